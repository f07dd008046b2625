package worker

import (
	"context"
	"testing"
	"time"
)

// An event that a step emits wakes the relays up once it is committed: a chain of pipelines does not wait for polls.
func TestEmittedEventsWakeTheRelays(t *testing.T) {
	w := newWorld(t, `{
		"nodes": [{"id": "start", "type": "start"},
			{"id": "tell", "type": "emit-event", "config": {"eventType": "OrderIntegrated", "payload": {"n": 1}}}],
		"edges": [{"from": "start", "to": "tell"}]}`)
	listener, err := w.db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Release()
	if _, err := listener.Exec(t.Context(), "LISTEN relayops_outbox"); err != nil {
		t.Fatal(err)
	}
	w.start()
	id := w.emit("acme", "OrderConfirmed", `{}`)
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	if _, err := listener.Conn().WaitForNotification(ctx); err != nil {
		t.Fatalf("no wake-up: %v", err)
	}
	w.awaitState("acme", id, "SUCCEEDED")
	equal(t, "emitted", w.count("outbox_events", "event_type = 'OrderIntegrated'"), 1)
}

// A database that only reads has a worker stop pulling, and say why; no delivery and no attempt is used up.
func TestReadOnlyDatabaseStopsPulling(t *testing.T) {
	w := newWorld(t, `{"nodes": [{"id": "start", "type": "start"}], "edges": []}`)
	worker := w.start()
	first := w.emit("acme", "OrderConfirmed", `{}`)
	w.awaitState("acme", first, "SUCCEEDED")

	d := w.commit("acme", "OrderConfirmed", `{}`, nil)
	name := query[string](w, "SELECT current_database()")
	if _, err := w.db.Exec(t.Context(), `ALTER DATABASE "`+name+`" SET default_transaction_read_only = on`); err != nil {
		t.Fatal(err)
	}
	// The worker's connections learn of it as they are made anew.
	if _, err := w.db.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	w.eventually("the reason", func() string {
		if status := worker.Status(); status.Reason != ReasonDatabaseReadOnly {
			return string(status.Reason)
		}
		return ""
	})
	time.Sleep(time.Second) // A pull that was under way ends.
	seq := w.publish(d)
	time.Sleep(2 * time.Second) // Long enough for many rounds of pull and refusal, if there were any.
	consumer, err := w.js.Consumer(t.Context(), testStream, w.spec.Consumer)
	if err != nil {
		t.Fatal(err)
	}
	if info := consumer.CachedInfo(); info.Delivered.Stream >= seq || info.NumRedelivered > 0 {
		t.Errorf("delivered up to %d of %d, %d redelivered, want nothing pulled", info.Delivered.Stream, seq, info.NumRedelivered)
	}
	if _, err := w.db.Exec(t.Context(), `SET default_transaction_read_only = off`); err != nil {
		t.Fatal(err)
	}
	if _, err := w.db.Exec(t.Context(), `ALTER DATABASE "`+name+`" RESET default_transaction_read_only`); err != nil {
		t.Fatal(err)
	}
	if _, err := w.db.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	w.awaitState("acme", d.ID, "SUCCEEDED")
	equal(t, "attempt", query[int](w, "SELECT attempt FROM relayops.pipeline_executions WHERE event_id = $1", d.ID), 1)
}

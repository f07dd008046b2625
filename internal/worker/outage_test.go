package worker

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/relayops/relayops/internal/connect"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node"
	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/testenv"
)

// Guarantee 11: the database goes away in the middle of executions and comes back after their leases are over; no
// attempt is counted for it, and nothing is done twice.
func TestDatabaseOutageBurnsNoAttempt(t *testing.T) {
	server := testenv.Postgres(t)
	var blocked *gate
	service := newERP(t, func(_ int, _ string, _ http.ResponseWriter) { blocked.wait() })
	blocked = newGate(t)
	w := newWorldOn(t, server.URL(), testenv.NATS(t), erpDefinition(service.URL), func(s *runspec.Worker) {
		s.MaxAttempts = 1
		s.LeaseDuration = runspec.Duration(1500 * time.Millisecond)
		s.Concurrency = 2
	})
	one, two := w.start(ownRegistry), w.start(ownRegistry)
	const events = 12
	for i := range events {
		w.emit("acme", "OrderConfirmed", fmt.Sprintf(`{"number": "A-%d"}`, i))
	}
	w.eventually("four calls", func() string {
		service.mu.Lock()
		defer service.mu.Unlock()
		if len(service.calls) < 4 {
			return fmt.Sprint(len(service.calls))
		}
		return ""
	})
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	blocked.open() // The steps finish while their records cannot be written.
	w.eventually("the outage is noticed", func() string {
		for _, running := range []*started{one, two} {
			if ready, _ := running.Ready(); ready {
				return "not by all"
			}
		}
		return ""
	})
	time.Sleep(2 * time.Second) // Every lease runs out.
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.eventually("all executions", func() string {
		if n := w.count("pipeline_executions", "state = 'SUCCEEDED'"); n != events {
			return fmt.Sprint(n)
		}
		return ""
	})
	equal(t, "attempts", w.count("pipeline_executions", "attempt = 1"), events)
	equal(t, "dead letters", w.count("dead_letters", "true"), 0)
	equal(t, "emitted events", w.count("outbox_events", "event_type = 'OrderIntegrated'"), events)
	equal(t, "calls", len(service.calls), events)
	for _, running := range []*started{one, two} {
		ready, reason := running.Ready()
		equal(t, "ready "+reason, ready, true)
	}
}

// Guarantee 11: the broker goes away in the middle of an execution; it ends, is found to be over, and those that are
// due go on.
func TestBrokerOutage(t *testing.T) {
	var blocked *gate
	service := newERP(t, func(_ int, order string, _ http.ResponseWriter) {
		if order == "A-1" {
			blocked.wait()
		}
	})
	blocked = newGate(t)
	w := newWorld(t, erpDefinition(service.URL))
	running := w.start()
	id := w.emit("acme", "OrderConfirmed", `{"number": "A-1"}`)
	w.awaitCall(service, "A-1")
	w.broker.Kill()
	w.eventually("the outage is noticed", func() string {
		if ready, _ := running.Ready(); ready {
			return "not yet"
		}
		return ""
	})
	blocked.open()
	w.awaitState("acme", id, "SUCCEEDED")
	w.backlog(5, "-1 second")
	w.eventually("due executions", func() string {
		if n := w.count("pipeline_executions", "state = 'SUCCEEDED'"); n != 6 {
			return fmt.Sprint(n)
		}
		return ""
	})
	w.broker.Start()
	w.awaitSettled()
	again := w.emit("acme", "OrderConfirmed", `{"number": "A-2"}`)
	w.awaitState("acme", again, "SUCCEEDED")
	equal(t, "calls", len(service.callsFor("A-1")), 1)
	equal(t, "attempts", w.count("pipeline_executions", "event_id = $1 AND attempt = 1", id), 1)
}

// A worker starts without servers, says what is missing, and works when they are there.
func TestStartsWithoutServers(t *testing.T) {
	server := testenv.Postgres(t)
	w := newWorldOn(t, server.URL(), testenv.NATS(t), pureDefinition)
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.broker.Stop()
	nc, err := connect.NATS(runspec.NATS{URL: w.broker.URL()}, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	running := w.start(func(c *Config) { c.NATS = nc })
	reason := func(want Reason) func() string {
		return func() string {
			ready, found := running.Ready()
			if ready || !strings.HasPrefix(found, string(want)) {
				return found
			}
			return ""
		}
	}
	w.eventually("the reason without a database", reason(ReasonDatabaseUnreachable))
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.eventually("the reason without a broker", reason(ReasonBrokerUnreachable))
	w.backlog(1, "-1 second") // Runs without a broker. Its revision is recorded at the start.
	w.eventually("the due execution", func() string {
		if w.count("pipeline_executions", "state = 'SUCCEEDED'") != 1 {
			return "waits"
		}
		return ""
	})
	w.broker.Start()
	id := w.emit("acme", "OrderConfirmed", `{}`)
	w.awaitState("acme", id, "SUCCEEDED")
	ready, why := running.Ready()
	equal(t, "ready "+why, ready, true)
}

func TestMissingStreamIsWaitedFor(t *testing.T) {
	w := newWorld(t, pureDefinition)
	if err := w.js.DeleteStream(t.Context(), testStream); err != nil {
		t.Fatal(err)
	}
	running := w.start()
	w.eventually("the reason", func() string {
		if _, reason := running.Ready(); !strings.HasPrefix(reason, string(ReasonStreamMissing)) {
			return reason
		}
		return ""
	})
	if _, err := w.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: testStream, Subjects: []string{"events.*.*"}}); err != nil {
		t.Fatal(err)
	}
	id := w.emit("acme", "OrderConfirmed", `{}`)
	w.awaitState("acme", id, "SUCCEEDED")
}

func publishDefinition(subject string) string {
	return fmt.Sprintf(`{"nodes": [{"id": "start", "type": "start"},
		{"id": "tell", "type": "publish", "config": {"subject": "%s", "body": {"number": "{{number}}"}}}],
		"edges": [{"from": "start", "to": "tell"}]}`, subject)
}

func TestPublishNode(t *testing.T) {
	w := newWorld(t, publishDefinition("erp.orders"), func(s *runspec.Worker) { s.MaxAttempts = 2 })
	w.start()
	t.Run("without a stream", func(t *testing.T) {
		id := w.emit("acme", "OrderConfirmed", `{"number": "A-1"}`)
		w.awaitState("acme", id, "DEAD_LETTERED")
		equal(t, "dead letters", w.count("dead_letters", "code = 'max_attempts_exceeded' AND node_id = 'tell' AND event_id = $1", id), 1)
		equal(t, "steps", w.count("step_executions", "node_id = 'tell' AND code = 'publish_failed'"), 2)
	})
	if _, err := w.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ERP", Subjects: []string{"erp.>"}}); err != nil {
		t.Fatal(err)
	}
	t.Run("with a stream", func(t *testing.T) {
		id := w.emit("acme", "OrderConfirmed", `{"number": "A-2"}`)
		w.awaitState("acme", id, "SUCCEEDED")
		erp, err := w.js.Stream(t.Context(), "ERP")
		if err != nil {
			t.Fatal(err)
		}
		msg, err := erp.GetMsg(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "body", string(msg.Data), `{"number":"A-2"}`)
		key := query[string](w, "SELECT execution_id || '/tell' FROM relayops.pipeline_executions WHERE event_id = $1", id)
		equal(t, "message id", msg.Header.Get("Nats-Msg-Id"), key)
	})
}

// Guarantee 11: a publish node that finds no broker costs its execution no attempt.
func TestPublishWithoutABrokerBurnsNoAttempt(t *testing.T) {
	w := newWorld(t, publishDefinition("erp.orders"), func(s *runspec.Worker) { s.MaxAttempts = 1 })
	if _, err := w.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ERP", Subjects: []string{"erp.>"}}); err != nil {
		t.Fatal(err)
	}
	running := w.start()
	first := w.emit("acme", "OrderConfirmed", `{"number": "A-1"}`)
	w.awaitState("acme", first, "SUCCEEDED")
	w.broker.Kill()
	w.eventually("the outage is noticed", func() string {
		if ready, _ := running.Ready(); ready {
			return "not yet"
		}
		return ""
	})
	w.backlogFresh(1)
	w.eventually("the hand-back", func() string {
		if w.count("pipeline_executions", "state = 'RETRY' AND attempt = 0 AND fencing_token >= 1 AND due_at > now()") != 1 {
			return "missing"
		}
		return ""
	})
	w.broker.Start()
	w.eventually("the execution", func() string {
		if w.count("pipeline_executions", "state = 'SUCCEEDED' AND attempt = 1") != 2 {
			return "waits"
		}
		return ""
	})
}

// backlogFresh puts executions into the ledger that never ran.
func (w *world) backlogFresh(n int) {
	w.t.Helper()
	w.backlog(n, "-1 second")
	if _, err := w.db.Exec(w.t.Context(), `UPDATE relayops.pipeline_executions SET attempt = 0, fencing_token = 0
		WHERE state = 'RETRY'`); err != nil {
		w.t.Fatal(err)
	}
}

// An execution goes on with the revision that it began with.
func TestRetryKeepsItsRevision(t *testing.T) {
	old := newERP(t, func(n int, _ string, w http.ResponseWriter) {
		if n == 1 {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	fresh := newERP(t, ok)
	w := newWorld(t, erpDefinition(old.URL), func(s *runspec.Worker) {
		s.BackOff.Initial = runspec.Duration(time.Second)
	})
	running := w.start(ownRegistry)
	id := w.emit("acme", "OrderConfirmed", `{"number": "A-1"}`)
	w.awaitState("acme", id, "RETRY")
	running.stop()
	next := newWorldOn(t, w.url, w.broker, erpDefinition(fresh.URL))
	next.spec.Revision = "r2"
	next.start()
	w.awaitState("acme", id, "SUCCEEDED")
	equal(t, "calls of the old revision", len(old.callsFor("A-1")), 2)
	equal(t, "calls of the new revision", len(fresh.callsFor("A-1")), 0)
	second := w.emit("acme", "OrderConfirmed", `{"number": "A-2"}`)
	w.awaitState("acme", second, "SUCCEEDED")
	equal(t, "calls of the new revision", len(fresh.callsFor("A-2")), 1)

	w.backlog(1, "1 hour")
	if _, err := w.db.Exec(t.Context(), "UPDATE relayops.pipeline_executions SET revision = 'gone', due_at = now() WHERE state = 'RETRY'"); err != nil {
		t.Fatal(err)
	}
	w.eventually("the missing revision", func() string {
		if w.count("dead_letters", "code = 'revision_missing'") != 1 {
			return "no dead letter"
		}
		return ""
	})
}

func TestSpecificationMistakes(t *testing.T) {
	w := newWorld(t, pureDefinition)
	broken := w.spec
	broken.Consumer, broken.Concurrency, broken.MaxDeliver, broken.LeaseDuration = "", 0, 3, 0
	broken.Subscription = runspec.Subscription{StartFrom: "Yesterday"}
	config := Config{
		Spec: broken, Pool: w.db, NATS: w.broker.Connect(), Types: node.Types(), Log: slog.New(slog.DiscardHandler),
		Registry: prometheus.NewRegistry(),
	}
	_, err := New(config)
	if err == nil {
		t.Fatal("no error")
	}
	for _, field := range []string{
		"consumer: found nothing", "concurrency: found 0", "maxDeliver: found 3, allowed: more than maxAttempts, 3",
		"leaseDuration: found 0s", "subscription.eventTypes: found none", `subscription.startFrom: found "Yesterday"`,
	} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("the error lacks %q: %v", field, err)
		}
	}
	config.Spec = w.spec
	config.Spec.Definition = engine.Definition{Nodes: []engine.Node{{ID: "x", Type: "no-such-type"}}}
	if _, err := New(config); err == nil || !strings.Contains(err.Error(), "no-such-type") {
		t.Errorf("unknown node type: %v", err)
	}
}

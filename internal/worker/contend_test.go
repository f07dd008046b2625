package worker

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/execution"
	"github.com/relayops/relayops/internal/runspec"
)

// Guarantee 3: one terminal execution and one effect for each event, whoever contends for it.
func TestWorkersContend(t *testing.T) {
	service := newERP(t, func(n int, _ string, w http.ResponseWriter) {
		if n == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	w := newWorld(t, erpDefinition(service.URL))
	for range 4 {
		w.start(ownRegistry)
	}
	const events = 100
	deliveries := make([]*event.Delivery, events)
	for i := range deliveries {
		deliveries[i] = w.commit("acme", "OrderConfirmed", fmt.Sprintf(`{"number": "A-%d"}`, i), nil)
		w.publish(deliveries[i])
		w.publish(deliveries[i])
	}
	w.eventually("all executions", func() string {
		if n := w.count("pipeline_executions", "state = 'SUCCEEDED'"); n != events {
			return fmt.Sprintf("%d succeeded", n)
		}
		return ""
	})
	w.awaitSettled()
	equal(t, "executions", w.count("pipeline_executions", "true"), events)
	equal(t, "attempts", query[int](w, "SELECT sum(attempt) FROM relayops.pipeline_executions"), 2*events)
	equal(t, "emitted events", w.count("outbox_events", "event_type = 'OrderIntegrated'"), events)
	equal(t, "calls", len(service.calls), 2*events)
}

// abandon claims an event as a worker that crashes right after: its lease is short, its message is never settled.
func (w *world) abandon(d *event.Delivery, steps ...engine.Step) execution.Lease {
	w.t.Helper()
	writer, err := outbox.NewWriter()
	if err != nil {
		w.t.Fatal(err)
	}
	ledger, err := execution.New(w.db, execution.Config{
		PipelineKey: w.spec.PipelineKey, Owner: "crashed", MaxAttempts: w.spec.MaxAttempts, Lease: 50 * time.Millisecond,
		Events: writer,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := ledger.RecordRevision(context.Background(), w.spec.Revision, w.spec.Definition); err != nil {
		w.t.Fatal(err)
	}
	claim, err := ledger.Claim(context.Background(), execution.Request{
		Delivery: d, Revision: w.spec.Revision, Stream: testStream, StreamSeq: w.lastSeq(), TakeOver: true,
	})
	if err != nil || claim.Verdict != execution.Claimed {
		w.t.Fatalf("claim: %+v, %v", claim, err)
	}
	if len(steps) > 0 {
		if err := ledger.CommitSteps(context.Background(), claim.Lease, steps); err != nil {
			w.t.Fatal(err)
		}
	}
	return claim.Lease
}

func (w *world) lastSeq() uint64 {
	w.t.Helper()
	found, err := w.js.Stream(context.Background(), testStream)
	if err != nil {
		w.t.Fatal(err)
	}
	return found.CachedInfo().State.LastSeq
}

func shortLease(s *runspec.Worker) { s.LeaseDuration = runspec.Duration(600 * time.Millisecond) }

// A worker that crashed is replaced when its lease has run out; what it recorded is not done again.
func TestCrashedWorkerIsReplaced(t *testing.T) {
	service := newERP(t, ok)
	w := newWorld(t, erpDefinition(service.URL), shortLease)
	d := w.commit("acme", "OrderConfirmed", `{"number": "A-1"}`, nil)
	done := func(node, nodeType string) engine.Step {
		return engine.Step{
			NodeID: node, NodeType: nodeType, Outcome: engine.StepSucceeded, Branch: engine.BranchSuccess,
			StartedAt: time.Now(), FinishedAt: time.Now(),
		}
	}
	w.abandon(d, done("start", "start"), done("notify", "http-request"))
	w.start()
	w.awaitState("acme", d.ID, "SUCCEEDED")
	equal(t, "calls", len(service.callsFor("A-1")), 0)
	equal(t, "attempt and token", w.count("pipeline_executions", "attempt = 2 AND fencing_token = 2"), 1)
}

// An abandoned event that only the stream still has is read from there.
func TestAbandonedForeignEventIsReadFromTheStream(t *testing.T) {
	service := newERP(t, ok)
	w := newWorld(t, erpDefinition(service.URL), shortLease, func(s *runspec.Worker) { s.Subscription.StartFrom = "Now" })
	d := w.foreign("acme", "OrderConfirmed", `{"number":   "A-1"}`)
	w.publish(d)
	w.abandon(d)
	gone := w.foreign("acme", "OrderConfirmed", `{"number": "A-2"}`)
	w.abandon(gone) // The message at its place is another one.
	w.start()
	w.awaitState("acme", d.ID, "SUCCEEDED")
	w.awaitState("acme", gone.ID, "DEAD_LETTERED")
	equal(t, "calls", len(service.callsFor("A-1")), 1)
	equal(t, "expired", w.count("dead_letters", "code = 'payload_expired' AND event_id = $1", gone.ID), 1)
}

// An event in which every worker crashes ends in the dead letters, and nothing of it runs any more.
func TestCrashLoopEnds(t *testing.T) {
	service := newERP(t, ok)
	w := newWorld(t, erpDefinition(service.URL), shortLease)
	d := w.commit("acme", "OrderConfirmed", `{"number": "A-1"}`, nil)
	for range 3 {
		w.abandon(d)
		time.Sleep(60 * time.Millisecond)
	}
	w.publish(d)
	w.start()
	w.awaitState("acme", d.ID, "DEAD_LETTERED")
	w.awaitSettled()
	equal(t, "calls", len(service.callsFor("A-1")), 0)
	equal(t, "dead letters", w.count("dead_letters", "code = 'max_attempts_exceeded' AND attempt = 3"), 1)
}

// The dead letter of an event that only the stream has keeps its payload; while the stream cannot be asked it waits.
func TestCrashLoopKeepsTheEvent(t *testing.T) {
	w := newWorld(t, pureDefinition, shortLease, func(s *runspec.Worker) { s.Subscription.StartFrom = "Now" })
	d := w.foreign("acme", "OrderConfirmed", `{"number": "A-1"}`)
	w.publish(d)
	for range 3 {
		w.abandon(d)
		time.Sleep(60 * time.Millisecond)
	}
	w.broker.Stop()
	w.start()
	w.eventually("a look at it", func() string {
		if w.count("pipeline_executions", "fencing_token > 4") == 0 {
			return "missing"
		}
		return ""
	})
	equal(t, "state without a broker", w.stateOf("acme", d.ID), "RUNNING")
	w.broker.Start()
	w.awaitState("acme", d.ID, "DEAD_LETTERED")
	equal(t, "attempts", w.count("pipeline_executions", "attempt = 3"), 1)
	equal(t, "kept", w.count("event_payloads", "event_id = $1", d.ID), 1)
}

// Guarantee 3: a worker whose lease was taken over stops, records nothing, and says nothing to the broker.
func TestStaleWorkerIsHarmless(t *testing.T) {
	var blocked *gate
	service := newERP(t, func(n int, _ string, w http.ResponseWriter) {
		if n == 1 {
			blocked.wait()
		}
	})
	blocked = newGate(t)
	w := newWorld(t, erpDefinition(service.URL))
	stale := w.start()
	id := w.emit("acme", "OrderConfirmed", `{"number": "A-1"}`)
	w.eventually("the first call", func() string {
		if len(service.callsFor("A-1")) == 0 {
			return "missing"
		}
		return ""
	})
	fresh := w.start(ownRegistry)
	// As if its renewals had not come through.
	w.eventually("the takeover", func() string {
		tag, err := w.db.Exec(t.Context(), `UPDATE relayops.pipeline_executions
			SET lease_until = now() - interval '1 s' WHERE fencing_token = 1`)
		if err != nil || tag.RowsAffected() > 0 {
			return fmt.Sprint("missing", err)
		}
		return ""
	})
	w.awaitState("acme", id, "SUCCEEDED")
	blocked.open()
	w.eventually("the stale attempt", func() string {
		if n := testutil.ToFloat64(stale.metrics.leasesLost) + testutil.ToFloat64(fresh.metrics.leasesLost); n != 1 {
			return fmt.Sprintf("%v leases lost", n)
		}
		return ""
	})
	w.awaitSettled()
	equal(t, "token", w.count("pipeline_executions", "fencing_token = 2 AND state = 'SUCCEEDED'"), 1)
	equal(t, "steps of the stale attempt", w.count("step_executions", "fencing_token = 1"), 0)
	equal(t, "emitted events", w.count("outbox_events", "event_type = 'OrderIntegrated'"), 1)
	calls := service.callsFor("A-1")
	equal(t, "calls", len(calls), 2)
	equal(t, "key", calls[0].key, calls[1].key)
}

// A lease is renewed as long as its step runs, and the message is kept from being delivered again.
func TestLongStepKeepsItsLease(t *testing.T) {
	service := newERP(t, func(_ int, _ string, _ http.ResponseWriter) { time.Sleep(2 * time.Second) })
	w := newWorld(t, erpDefinition(service.URL), shortLease)
	w.start()
	w.start(ownRegistry)
	id := w.emit("acme", "OrderConfirmed", `{"number": "A-1"}`)
	w.awaitState("acme", id, "SUCCEEDED")
	w.awaitSettled()
	equal(t, "calls", len(service.callsFor("A-1")), 1)
	equal(t, "token", w.count("pipeline_executions", "fencing_token = 1"), 1)
	consumer, err := w.js.Consumer(t.Context(), testStream, w.spec.Consumer)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "redelivered", consumer.CachedInfo().NumRedelivered, 0)
}

// backlog puts executions into the ledger that are due at an offset from now.
func (w *world) backlog(n int, due string) {
	w.t.Helper()
	_, err := w.db.Exec(context.Background(), `WITH e AS (
		INSERT INTO relayops.outbox_events (org_id, event_type, payload, status)
		SELECT 'acme', 'OrderConfirmed', jsonb_build_object('number', 'B-' || g), 'PUBLISHED'
		FROM generate_series(1, $1::integer) g RETURNING event_id, payload_sha256)
	INSERT INTO relayops.pipeline_executions (execution_id, org_id, pipeline_key, event_id, operation_version,
		event_type, payload_sha256, revision, state, attempt, fencing_token, due_at, occurred_at)
	SELECT gen_random_uuid(), 'acme', $2, event_id, 1, 'OrderConfirmed', payload_sha256, 'r1', 'RETRY', 1, 1,
		now() + $3::interval, now() FROM e`, n, w.spec.PipelineKey, due)
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestTenThousandInBackOffDelayNothing(t *testing.T) {
	w := newWorld(t, pureDefinition)
	w.backlog(10_000, "1 hour")
	w.start()
	w.emit("acme", "OrderConfirmed", `{}`) // The worker has started when this one is through.
	w.eventually("the first event", func() string {
		if w.count("pipeline_executions", "state = 'SUCCEEDED'") == 0 {
			return "missing"
		}
		return ""
	})
	began := time.Now()
	id := w.emit("acme", "OrderConfirmed", `{}`)
	w.awaitState("acme", id, "SUCCEEDED")
	if took := time.Since(began); took > time.Second {
		t.Errorf("an event behind 10000 in back-off took %v", took)
	}
}

func TestFloodOfDueExecutionsLeavesRoomForEvents(t *testing.T) {
	service := newERP(t, func(_ int, order string, _ http.ResponseWriter) { time.Sleep(5 * time.Millisecond) })
	w := newWorld(t, erpDefinition(service.URL), func(s *runspec.Worker) { s.Concurrency = 2 })
	w.backlog(2000, "-1 second")
	w.start()
	w.eventually("the flood", func() string {
		if w.count("pipeline_executions", "state = 'SUCCEEDED'") < 20 {
			return "has not begun"
		}
		return ""
	})
	var last uuid.UUID
	for range 20 {
		last = w.emit("acme", "OrderConfirmed", `{"number": "N"}`)
	}
	w.awaitState("acme", last, "SUCCEEDED")
	if left := w.count("pipeline_executions", "state = 'RETRY'"); left < 1000 {
		t.Errorf("only %d due executions were left when 20 new events were through", left)
	}
}

func TestFloodOfEventsLeavesRoomForDueExecutions(t *testing.T) {
	service := newERP(t, func(_ int, _ string, _ http.ResponseWriter) { time.Sleep(5 * time.Millisecond) })
	w := newWorld(t, erpDefinition(service.URL), func(s *runspec.Worker) { s.Concurrency = 1 })
	const flood = 1000
	for range flood {
		w.publish(w.foreign("acme", "OrderConfirmed", `{"number": "N"}`))
	}
	w.start()
	w.eventually("the flood", func() string {
		if w.count("pipeline_executions", "state = 'SUCCEEDED'") < 10 {
			return "has not begun"
		}
		return ""
	})
	w.backlog(10, "-1 second")
	w.eventually("the due executions", func() string {
		if w.count("pipeline_executions", "state = 'SUCCEEDED' AND fencing_token = 2") < 10 {
			return "wait"
		}
		return ""
	})
	if through := w.count("pipeline_executions", "state = 'SUCCEEDED'"); through > flood/2 {
		t.Errorf("%d executions were through when 10 due ones were", through)
	}
}

// A worker asks for no more messages than it has slots.
func TestPullsNoMoreThanItsSlots(t *testing.T) {
	var blocked *gate
	service := newERP(t, func(_ int, _ string, _ http.ResponseWriter) { blocked.wait() })
	blocked = newGate(t)
	w := newWorld(t, erpDefinition(service.URL), func(s *runspec.Worker) { s.Concurrency = 3 })
	for range 20 {
		w.emit("acme", "OrderConfirmed", `{"number": "A"}`)
	}
	w.start()
	info := func() *jetstream.ConsumerInfo {
		consumer, err := w.js.Consumer(context.Background(), testStream, w.spec.Consumer)
		if err != nil {
			return &jetstream.ConsumerInfo{}
		}
		return consumer.CachedInfo()
	}
	w.eventually("three messages in hand", func() string {
		if n := info().NumAckPending; n != 3 {
			return fmt.Sprint(n)
		}
		return ""
	})
	for range 10 {
		time.Sleep(50 * time.Millisecond)
		if n := info().NumAckPending; n != 3 {
			t.Fatalf("%d messages in hand with 3 slots", n)
		}
	}
	blocked.open()
	w.eventually("all", func() string {
		if n := w.count("pipeline_executions", "state = 'SUCCEEDED'"); n != 20 {
			return fmt.Sprint(n)
		}
		return ""
	})
}

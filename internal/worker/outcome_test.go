package worker

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/runspec"
)

func TestEventBecomesATrackedExecution(t *testing.T) {
	service := newERP(t, ok)
	w := newWorld(t, erpDefinition(service.URL))
	w.start()
	id := w.emit("acme", "OrderConfirmed", `{"number": "A-1"}`)
	w.awaitState("acme", id, "SUCCEEDED")
	w.awaitSettled()
	equal(t, "steps", w.count("step_executions", "outcome = 'SUCCEEDED'"), 4)
	equal(t, "tags", w.count("pipeline_executions", "status_tags->0->>'tag' = 'success' AND attempt = 1"), 1)
	equal(t, "emitted events", w.count("outbox_events", "event_type = 'OrderIntegrated' AND payload = '{\"number\": \"A-1\"}'"), 1)
	equal(t, "revisions", w.count("pipeline_revisions", "revision = 'r1'"), 1)
	calls := service.callsFor("A-1")
	if len(calls) != 1 || calls[0].key == "" {
		t.Fatalf("calls: %+v", calls)
	}
	if !strings.Contains(calls[0].trace, "0af7651916cd43dd8448eb211c80319c") {
		t.Errorf("traceparent of the call: %q", calls[0].trace)
	}
}

// Guarantee 4: a transient failure is retried where it failed, with the same idempotency key, by the ledger.
func TestRetryResumesAtTheFailedStep(t *testing.T) {
	first := newERP(t, ok)
	second := newERP(t, func(n int, _ string, w http.ResponseWriter) {
		if n < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	w := newWorld(t, fmt.Sprintf(`{"nodes": [{"id": "start", "type": "start"},
		{"id": "one", "type": "http-request", "config": {"method": "POST", "url": "%s", "body": {"number": "{{number}}"}}},
		{"id": "two", "type": "http-request", "config": {"method": "POST", "url": "%s", "body": {"number": "{{number}}"}}}],
		"edges": [{"from": "start", "to": "one"}, {"from": "one", "to": "two"}]}`, first.URL, second.URL))
	w.start()
	id := w.emit("acme", "OrderConfirmed", `{"number": "A-1"}`)
	w.awaitState("acme", id, "SUCCEEDED")
	w.awaitSettled()
	equal(t, "calls of the first step", len(first.callsFor("A-1")), 1)
	calls := second.callsFor("A-1")
	equal(t, "calls of the second step", len(calls), 3)
	for _, c := range calls {
		equal(t, "key", c.key, calls[0].key)
	}
	equal(t, "attempts", query[int](w, "SELECT attempt FROM relayops.pipeline_executions"), 3)
	equal(t, "failed steps", w.count("step_executions", "node_id = 'two' AND outcome = 'FAILED' AND http_status = 503"), 2)
}

// Guarantee 4: three attempts, never a fourth.
func TestAttemptsAreBounded(t *testing.T) {
	service := newERP(t, func(_ int, _ string, w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) })
	w := newWorld(t, erpDefinition(service.URL))
	w.start()
	id := w.emit("acme", "OrderConfirmed", `{"number": "A-1"}`)
	w.awaitState("acme", id, "DEAD_LETTERED")
	w.awaitSettled()
	time.Sleep(300 * time.Millisecond) // Time for a fourth, if there were one.
	equal(t, "calls", len(service.callsFor("A-1")), 3)
	equal(t, "dead letters", w.count("dead_letters", `code = 'max_attempts_exceeded' AND node_id = 'notify'
		AND http_status = 500 AND attempt = 3`), 1)
	equal(t, "kept payloads", w.count("event_payloads", "true"), 0) // The outbox has it.
}

// Guarantee 4: a permanent failure goes to the dead letters on its first attempt.
func TestPermanentFailureIsNotRetried(t *testing.T) {
	service := newERP(t, func(_ int, _ string, w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) })
	w := newWorld(t, erpDefinition(service.URL))
	w.start()
	id := w.emit("acme", "OrderConfirmed", `{"number": "A-1"}`)
	w.awaitState("acme", id, "DEAD_LETTERED")
	w.awaitSettled()
	equal(t, "calls", len(service.callsFor("A-1")), 1)
	equal(t, "dead letters", w.count("dead_letters", "code = 'http_status' AND http_status = 404 AND attempt = 1"), 1)
}

func TestRetryAfterIsHonoured(t *testing.T) {
	service := newERP(t, func(n int, _ string, w http.ResponseWriter) {
		if n == 1 {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	w := newWorld(t, erpDefinition(service.URL))
	w.start()
	id := w.emit("acme", "OrderConfirmed", `{"number": "A-1"}`)
	w.awaitState("acme", id, "RETRY")
	w.awaitSettled() // Acknowledged: the ledger owns the wait.
	equal(t, "due in an hour", w.count("pipeline_executions", "due_at > now() + interval '59 minutes' AND code = 'http_status'"), 1)
}

func TestCancelIsFinal(t *testing.T) {
	service := newERP(t, func(_ int, _ string, w http.ResponseWriter) { w.WriteHeader(http.StatusGone) })
	definition := strings.Replace(erpDefinition(service.URL), `"type": "http-request",`,
		`"type": "http-request", "classify": [{"httpStatus": "410", "as": "cancel"}],`, 1)
	w := newWorld(t, definition)
	w.start()
	d := w.commit("acme", "OrderConfirmed", `{"number": "A-1"}`, nil)
	w.publish(d)
	w.awaitState("acme", d.ID, "CANCELLED")
	w.publish(d)
	w.awaitSettled()
	equal(t, "calls", len(service.callsFor("A-1")), 1)
	equal(t, "dead letters", w.count("dead_letters", "true"), 0)
}

func TestDeadlineIsCheckedAtTheClaim(t *testing.T) {
	service := newERP(t, ok)
	w := newWorld(t, erpDefinition(service.URL), func(s *runspec.Worker) { s.Deadline = runspec.Duration(time.Minute) })
	w.start()
	d := w.foreign("acme", "OrderConfirmed", `{"number": "A-1"}`)
	d.OccurredAt = time.Now().Add(-time.Hour)
	w.publish(d)
	w.awaitState("acme", d.ID, "CANCELLED")
	w.awaitSettled()
	equal(t, "calls", len(service.callsFor("A-1")), 0)
}

func TestPipelineTimeoutCountsExecutingTime(t *testing.T) {
	var stuck *gate
	service := newERP(t, func(_ int, _ string, _ http.ResponseWriter) { stuck.wait() })
	stuck = newGate(t)
	w := newWorld(t, erpDefinition(service.URL), func(s *runspec.Worker) {
		s.StepTimeout, s.PipelineTimeout = runspec.Duration(400*time.Millisecond), runspec.Duration(600*time.Millisecond)
		s.MaxAttempts, s.MaxDeliver = 10, 20
		// The waits alone would exceed the timeout.
		s.BackOff.Initial, s.BackOff.Jitter = runspec.Duration(700*time.Millisecond), 0
	})
	w.start()
	id := w.emit("acme", "OrderConfirmed", `{"number": "A-1"}`)
	w.awaitState("acme", id, "DEAD_LETTERED")
	equal(t, "calls", len(service.callsFor("A-1")), 2)
	equal(t, "dead letters", w.count("dead_letters", "code = 'pipeline_timeout' AND attempt = 2"), 1)
	equal(t, "interrupted steps", w.count("step_executions", "outcome = 'INTERRUPTED'"), 1)
	executed := query[int](w, "SELECT executed_ms FROM relayops.pipeline_executions")
	if executed < 550 || executed > 900 {
		t.Errorf("executed %d ms, want about 600", executed)
	}
}

// Guarantee 3: what is delivered again after its end is acknowledged, and runs nothing.
func TestRedeliveryAfterTheEnd(t *testing.T) {
	service := newERP(t, ok)
	w := newWorld(t, erpDefinition(service.URL))
	w.start()
	d := w.commit("acme", "OrderConfirmed", `{"number": "A-1"}`, nil)
	for range 5 {
		w.publish(d)
	}
	w.awaitState("acme", d.ID, "SUCCEEDED")
	w.awaitSettled()
	equal(t, "calls", len(service.callsFor("A-1")), 1)
	equal(t, "executions", w.count("pipeline_executions", "true"), 1)
	equal(t, "emitted events", w.count("outbox_events", "event_type = 'OrderIntegrated'"), 1)
}

// Guarantee 8: the same ids in two organisations are two executions.
func TestTwoOrgsWithTheSameIDs(t *testing.T) {
	service := newERP(t, ok)
	w := newWorld(t, erpDefinition(service.URL))
	w.start()
	one := w.commit("acme", "OrderConfirmed", `{"number": "A-1"}`, nil)
	two := w.commit("globex", "OrderConfirmed", `{"number": "G-1"}`, &one.ID)
	w.publish(one)
	w.publish(two)
	w.awaitState("acme", one.ID, "SUCCEEDED")
	w.awaitState("globex", one.ID, "SUCCEEDED")
	equal(t, "calls for acme", len(service.callsFor("A-1")), 1)
	equal(t, "calls for globex", len(service.callsFor("G-1")), 1)
	if service.callsFor("A-1")[0].key == service.callsFor("G-1")[0].key {
		t.Error("two organisations share an idempotency key")
	}
	equal(t, "events of acme", w.count("outbox_events", "event_type = 'OrderIntegrated' AND org_id = 'acme'"), 1)
}

func TestEventsThatAreNotForThisPipeline(t *testing.T) {
	w := newWorld(t, pureDefinition, func(s *runspec.Worker) {
		s.Subscription.EventTypes = []string{"OrderConfirmed", "OrderChanged"}
		s.Subscription.Orgs = []string{"acme"}
		s.Subscription.StartFrom = "Now"
	})
	before := w.commit("acme", "OrderConfirmed", `{}`, nil) // Committed before the subscription, published after it.
	running := w.start()
	w.eventually("the subscription", func() string {
		if running.topology.Load() == nil {
			return "missing"
		}
		return ""
	})
	w.publish(before)
	foreignType := w.emit("acme", "InvoicePaid", `{}`)
	foreignOrg := w.emit("globex", "OrderConfirmed", `{}`)
	reprocess := w.commit("acme", "OrderConfirmed", `{}`, nil)
	reprocess.PipelineKey, reprocess.OperationVersion = "shop/default/other", 2
	w.publish(reprocess)
	again := *before
	again.PipelineKey, again.OperationVersion = w.spec.PipelineKey, 2
	w.publish(&again)
	last := w.emit("acme", "OrderChanged", `{}`)
	w.awaitState("acme", last, "SUCCEEDED")
	w.awaitSettled()
	equal(t, "other type", w.stateOf("acme", foreignType), "")
	equal(t, "other org", w.stateOf("globex", foreignOrg), "")
	equal(t, "another pipeline's reprocess", w.stateOf("acme", reprocess.ID), "")
	equal(t, "our reprocess of an old event", w.count("pipeline_executions", "event_id = $1 AND operation_version = 2", before.ID), 1)
	equal(t, "executions", w.count("pipeline_executions", "true"), 2)
}

func TestUndecodableMessageIsADeadLetter(t *testing.T) {
	w := newWorld(t, pureDefinition)
	w.start()
	bad := w.publishRaw("acme", "OrderConfirmed", map[string][]string{event.HeaderEventID: {"no id"}}, []byte("secret-body"))
	headers, body := event.Encode(w.foreign("acme", "OrderConfirmed", `{"a": 1}`), "")
	tampered := w.publishRaw("acme", "OrderConfirmed", headers, append(body, ' '))
	id := w.emit("acme", "OrderConfirmed", `{}`)
	w.awaitState("acme", id, "SUCCEEDED")
	w.awaitSettled()
	for _, seq := range []uint64{bad, tampered} {
		equal(t, "dead letters", w.count("dead_letters", `code = 'schema_invalid' AND execution_id IS NULL
			AND org_id = 'acme' AND stream = $1 AND stream_seq = $2`, testStream, seq), 1)
	}
}

// Guarantee 9: the same key with another payload is refused, and the execution that has it stays as it is.
func TestPayloadConflictAtTheClaim(t *testing.T) {
	w := newWorld(t, pureDefinition)
	w.start()
	d := w.commit("acme", "OrderConfirmed", `{"total": 1}`, nil)
	w.publish(d)
	w.awaitState("acme", d.ID, "SUCCEEDED")
	other := *d
	other.Payload = []byte(`{"total": 2}`)
	other.PayloadSHA256 = event.PayloadHash(other.Payload)
	seq := w.publish(&other)
	w.eventually("the dead letter", func() string {
		if w.count("dead_letters", "code = 'payload_conflict' AND stream_seq = $1 AND event_id = $2 AND execution_id IS NULL", seq, d.ID) == 1 {
			return ""
		}
		return "missing"
	})
	w.awaitSettled()
	equal(t, "state", w.stateOf("acme", d.ID), "SUCCEEDED")
	equal(t, "executions", w.count("pipeline_executions", "true"), 1)
}

func TestClaimCheck(t *testing.T) {
	service := newERP(t, ok)
	w := newWorld(t, erpDefinition(service.URL))
	w.start()
	byReference := func(d *event.Delivery) *event.Delivery {
		d.PayloadRef = event.PayloadRefOutbox
		return d
	}
	found := byReference(w.commit("acme", "OrderConfirmed", `{"number": "A-1"}`, nil))
	w.publish(found)
	w.awaitState("acme", found.ID, "SUCCEEDED")
	equal(t, "calls", len(service.callsFor("A-1")), 1)

	gone := byReference(w.foreign("acme", "OrderConfirmed", `{"number": "A-2"}`))
	w.publish(gone)
	w.awaitState("acme", gone.ID, "DEAD_LETTERED")
	equal(t, "expired", w.count("dead_letters", "code = 'payload_expired' AND event_id = $1", gone.ID), 1)

	changed := byReference(w.commit("acme", "OrderConfirmed", `{"number": "A-3"}`, nil))
	changed.PayloadSHA256[0] ^= 1
	w.publish(changed)
	w.awaitState("acme", changed.ID, "DEAD_LETTERED")
	equal(t, "conflict", w.count("dead_letters", "code = 'payload_conflict' AND event_id = $1", changed.ID), 1)
	w.awaitSettled()
}

// An event that no outbox has runs again from what the ledger kept, and an abandoned one from the stream.
func TestForeignEventIsKeptForItsRetry(t *testing.T) {
	service := newERP(t, func(n int, _ string, w http.ResponseWriter) {
		if n == 1 {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	w := newWorld(t, erpDefinition(service.URL))
	w.start()
	d := w.foreign("acme", "OrderConfirmed", `{"number":   "A-1"}`)
	w.publish(d)
	w.awaitState("acme", d.ID, "SUCCEEDED")
	equal(t, "kept", w.count("event_payloads", "event_id = $1", d.ID), 1)
	equal(t, "calls", len(service.callsFor("A-1")), 2)
}

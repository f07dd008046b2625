package worker

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/relayops/relayops/internal/runspec"
)

// twoCalls is a pipeline of two calls, one after the other.
func twoCalls(first, second string) string {
	return fmt.Sprintf(`{"nodes": [{"id": "start", "type": "start"},
		{"id": "one", "type": "http-request", "config": {"method": "POST", "url": "%s", "body": {"number": "{{number}}"}}},
		{"id": "two", "type": "http-request", "config": {"method": "POST", "url": "%s", "body": {"number": "{{number}}"}}}],
		"edges": [{"from": "start", "to": "one"}, {"from": "one", "to": "two"}]}`, first, second)
}

// Guarantee 10: a stop finishes the step in hand, and the execution resumes at its next step, as the same attempt.
func TestStopFinishesTheStepInHand(t *testing.T) {
	var blocked *gate
	first := newERP(t, func(_ int, _ string, _ http.ResponseWriter) { blocked.wait() })
	second := newERP(t, ok)
	blocked = newGate(t)
	w := newWorld(t, twoCalls(first.URL, second.URL))
	running := w.start()
	id := w.emit("acme", "OrderConfirmed", `{"number": "A-1"}`)
	w.awaitCall(first, "A-1")
	go func() {
		time.Sleep(300 * time.Millisecond)
		blocked.open()
	}()
	running.stop()
	equal(t, "state", w.stateOf("acme", id), "RETRY")
	equal(t, "handed back", w.count("pipeline_executions", "attempt = 0 AND due_at <= now() AND code = ''"), 1)
	equal(t, "steps", w.count("step_executions", "node_id = 'one' AND outcome = 'SUCCEEDED'"), 1)
	equal(t, "calls of the next step", len(second.callsFor("A-1")), 0)
	w.awaitSettled() // The message was acknowledged: the ledger has it.

	w.start(ownRegistry)
	w.awaitState("acme", id, "SUCCEEDED")
	equal(t, "attempts", w.count("pipeline_executions", "attempt = 1"), 1)
	equal(t, "calls of the first step", len(first.callsFor("A-1")), 1)
	equal(t, "calls of the next step", len(second.callsFor("A-1")), 1)
}

// Guarantee 10: a step that outlasts the grace period is cut off, recorded as interrupted, and costs no attempt.
func TestStopCutsOffAStepThatOutlastsTheGrace(t *testing.T) {
	var blocked *gate
	service := newERP(t, func(n int, _ string, _ http.ResponseWriter) {
		if n == 1 {
			blocked.wait()
		}
	})
	blocked = newGate(t)
	w := newWorld(t, erpDefinition(service.URL), func(s *runspec.Worker) { s.GracePeriod = runspec.Duration(2 * time.Second) })
	running := w.start()
	id := w.emit("acme", "OrderConfirmed", `{"number": "A-1"}`)
	w.awaitCall(service, "A-1")
	began := time.Now()
	running.stop()
	if took := time.Since(began); took > 2500*time.Millisecond {
		t.Errorf("the stop took %v, with a grace period of 2 s", took)
	}
	equal(t, "state", w.stateOf("acme", id), "RETRY")
	equal(t, "interrupted", w.count("step_executions", "node_id = 'notify' AND outcome = 'INTERRUPTED'"), 1)
	equal(t, "attempts", w.count("pipeline_executions", "attempt = 0"), 1)
	w.start(ownRegistry)
	w.awaitState("acme", id, "SUCCEEDED")
	equal(t, "attempts", w.count("pipeline_executions", "attempt = 1"), 1)
}

// What comes after the stop is given back at once: another worker has it without waiting for the broker's patience.
func TestStopLosesNoMessage(t *testing.T) {
	w := newWorld(t, pureDefinition, func(s *runspec.Worker) { s.LeaseDuration = runspec.Duration(time.Minute) })
	other := w.start(ownRegistry)
	defer other.stop()
	const rounds, each = 10, 20
	for range rounds {
		running := w.start(ownRegistry)
		for i := range each {
			w.publish(w.foreign("acme", "OrderConfirmed", `{}`))
			if i == each/2 {
				go running.stop()
			}
		}
		running.stop()
	}
	w.eventually("all events", func() string {
		if n := w.count("pipeline_executions", "state = 'SUCCEEDED'"); n != rounds*each {
			return fmt.Sprint(n)
		}
		return ""
	})
	equal(t, "attempts", w.count("pipeline_executions", "attempt = 1"), rounds*each)
}

func TestStopLeavesNothingRunning(t *testing.T) {
	service := newERP(t, ok)
	w := newWorld(t, erpDefinition(service.URL))
	already := goleak.IgnoreCurrent()
	running := w.start()
	id := w.emit("acme", "OrderConfirmed", `{"number": "A-1"}`)
	w.awaitState("acme", id, "SUCCEEDED")
	running.stop()
	running.services.HTTP.CloseIdleConnections()
	service.CloseClientConnections()
	running.pool.Close()
	running.nc.Close()
	goleak.VerifyNone(t, already,
		// The test's own server and pool.
		goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"),
		goleak.IgnoreTopFunction("github.com/jackc/pgx/v5/pgxpool.(*Pool).backgroundHealthCheck"))
}

func (w *world) awaitCall(service *erp, order string) {
	w.t.Helper()
	w.eventually("the call", func() string {
		if len(service.callsFor(order)) == 0 {
			return "missing"
		}
		return ""
	})
}

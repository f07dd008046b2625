package process_test

import (
	"testing"
	"time"
)

// SIGTERM in the middle of a step: the step is finished and recorded, the process ends with 0, and another worker
// goes on at the next step, in the same attempt.
func TestSIGTERMInTheMiddleOfAStepHandsTheExecutionBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held := w.commit(t, 1)[0]
	gate := w.holdFirst(t, held.Number)
	w.relay("").awaitReady()
	stopping := w.worker("")
	gate.awaitEntered(t)
	stopping.terminate()
	time.Sleep(executionLease + time.Second) // The lease is kept while the step is finished.
	if !stopping.running() {
		t.Fatalf("the worker ended in the middle of a step: %s", stopping.state)
	}
	other := w.worker("")
	other.awaitReady()
	w.commit(t, 5) // They are the other worker's: the one that stops takes nothing new.
	time.Sleep(time.Second)
	gate.open()
	stopping.awaitCleanExit(w.workerSpec.GracePeriod.Std())
	w.account(all(succeededAtOnce))
	early, late := "s.fencing_token < e.fencing_token", "s.fencing_token = e.fencing_token"
	for _, condition := range []string{early, late} {
		if one[int](w, `SELECT count(*) FROM relayops.step_executions s JOIN relayops.pipeline_executions e
			USING (execution_id) WHERE e.event_id = $1 AND s.outcome = 'SUCCEEDED' AND `+condition, held.eventID) == 0 {
			t.Errorf("no step with %s: the execution was not handed back in its middle", condition)
		}
	}
}

// SIGTERM of relay and worker under load, with others that take over: both end with 0, and nobody notices.
func TestSIGTERMUnderLoadIsNobodysFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	relay, worker := w.relay(""), w.worker("")
	relay.awaitReady()
	worker.awaitReady()
	stop := w.load(t, 60, 3)
	defer stop()
	for range 3 {
		w.awaitProgress(20)
		nextRelay, nextWorker := w.relay(""), w.worker("")
		relay.terminate()
		worker.terminate()
		relay.awaitCleanExit(patience)
		worker.awaitCleanExit(patience)
		relay, worker = nextRelay, nextWorker
	}
	w.awaitProgress(20)
	stop()
	w.account(all(succeededAtOnce))
}

package process_test

import "testing"

// A worker is frozen in the middle of a step until its lease has run out. Another takes the execution over and ends
// it; the frozen one wakes up, gets the step's answer, and is refused: one effect. It is of use afterwards.
func TestAWorkerFrozenPastItsLeaseIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held := w.commit(t, 1)[0]
	gate := w.holdFirst(t, held.Number)
	w.relay("").awaitReady()
	frozen := w.worker("")
	gate.awaitEntered(t)
	frozen.freeze()
	gate.open()
	other := w.worker("")
	eventuallyEqual(w, "SUCCEEDED", "SELECT state FROM relayops.pipeline_executions WHERE event_id = $1", held.eventID)
	before := w.story(held)
	frozen.thaw()
	frozen.awaitMetric("relayops_lease_lost_total", 0) // It tried, and was refused.
	if after := w.story(held); after != before {
		t.Errorf("the frozen worker changed the execution:\nbefore %s\nafter  %s", before, after)
	}
	other.kill() // From here on the one that was frozen is alone.
	w.commit(t, 5)
	w.account(func(o order) fate {
		if o.key() == held.key() {
			return fate{state: "SUCCEEDED", requests: 2, attempt: 2}
		}
		return succeededAtOnce
	})
}

// story is everything that the ledger says of one order's execution.
func (w *world) story(o order) string {
	w.t.Helper()
	return one[string](w, `SELECT to_jsonb(e)::text ||
		(SELECT jsonb_agg(to_jsonb(s) ORDER BY s.node_id, s.attempt)::text
			FROM relayops.step_executions s WHERE s.execution_id = e.execution_id)
		FROM relayops.pipeline_executions e WHERE e.event_id = $1`, o.eventID)
}

// A relay is frozen between its claim and the broker's answers until the database has ended its claim. Another relay
// publishes the same rows; then the frozen one wakes up, and what it had sent arrives after all.
func TestARelayFrozenPastItsClaimLeaseIsHarmless(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	proxy := newNATSProxy(t, w.broker.URL())
	direct := w.relaySpec.NATS.URL
	w.relaySpec.NATS.URL = proxy.url()
	frozen := w.relay("")
	frozen.awaitReady()
	proxy.holdPublishes()
	w.commit(t, 10)
	await(t, proxy.held, "a publish")
	frozen.freeze()
	w.relaySpec.NATS.URL = direct
	other := w.relay("")
	w.worker("")
	w.awaitSettled(10)
	proxy.release()
	frozen.thaw()
	frozen.awaitMetric("relayops_relay_claims_lost_total", 0) // It tried to mark its rows, and was refused.
	other.kill()                                              // From here on the one that was frozen is alone.
	w.commit(t, 5)
	w.account(all(succeededAtOnce))
}

package process_test

import (
	"testing"
)

// An answer to a COMMIT of the worker's never comes. Whether the commit happened is read back and not guessed: what
// is recorded is not done again, what is not is recorded now; either way one effect, in the first attempt.
func TestACommitOfTheWorkerWithoutAnAnswerIsReadBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		needle string
		nth    int
	}{
		{"claim", "INSERT INTO relayops.pipeline_executions", 1},
		{"step", "INSERT INTO relayops.step_executions", 1},
		{"end", "INSERT INTO relayops.step_executions", 2},
	} {
		for _, l := range []struct {
			name string
			loss loss
		}{{"answer lost", answerLost}, {"request lost", requestLost}} {
			t.Run(c.name+" "+l.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				proxy := newPostgresProxy(t, w.url)
				w.workerSpec.Database.URL = proxy.databaseURL
				w.workerSpec.Concurrency = 1
				w.relay("")
				w.worker("").awaitReady()
				proxy.strike(c.needle, c.nth, l.loss)
				w.commit(t, 3)
				await(t, proxy.struck, "COMMIT of "+c.needle)
				w.account(all(succeededAtOnce))
			})
		}
	}
}

// The same for the COMMIT with which the relay marks what it published.
func TestACommitOfTheRelayWithoutAnAnswerIsReadBack(t *testing.T) {
	t.Parallel()
	for _, l := range []struct {
		name string
		loss loss
	}{{"answer lost", answerLost}, {"request lost", requestLost}} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			proxy := newPostgresProxy(t, w.url)
			w.relaySpec.Database.URL = proxy.databaseURL
			w.relay("").awaitReady()
			w.worker("")
			proxy.strike("UPDATE", 1, l.loss)
			w.commit(t, 10)
			await(t, proxy.struck, "COMMIT of the marks")
			w.commit(t, 3)
			w.account(all(succeededAtOnce))
		})
	}
}

// The broker's acknowledgement of a publish never comes: the event is published again under its id, the duplicate is
// verified, one message is in the stream, and no attempt is counted.
func TestAPublishWithoutAnAnswerIsVerified(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	proxy := newNATSProxy(t, w.broker.URL())
	w.relaySpec.NATS.URL = proxy.url()
	w.relay("").awaitReady()
	w.worker("")
	proxy.swallowAcks(7)
	w.commit(t, 12)
	w.account(all(succeededAtOnce))
	if n := proxy.swallowedAcks(); n != 7 {
		t.Errorf("%d acknowledgements were swallowed, wanted 7", n)
	}
}

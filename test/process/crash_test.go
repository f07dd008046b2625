package process_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/relayops/relayops/internal/crashpoint"
)

// A relay that is killed at any of its crash points, with more events committed while nobody relays: each event once.
func TestARelayKilledAtACrashPointLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for _, place := range []string{
		crashpoint.AfterClaim,
		crashpoint.AfterPublishBeforeMark,
		crashpoint.BeforeClaimCommit,
		crashpoint.AfterMark,
		crashpoint.AfterPublishBeforeMark + ":3",
		crashpoint.AfterMark + ":2",
	} {
		t.Run(strings.ReplaceAll(place, ":", "_pass_"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.relaySpec.BatchSize = 5
			w.commit(t, 8)
			w.rollBack(t, 3)
			w.worker("")
			crashing := w.relay(place)
			for crashing.running() {
				w.commit(t, 2) // A later pass of the place needs more events.
				select {
				case <-crashing.exited:
				case <-t.Context().Done():
				default:
					pause()
				}
			}
			crashing.awaitCrash()
			w.commit(t, 4)
			w.rollBack(t, 2)
			w.relay("")
			w.account(all(succeededAtOnce))
		})
	}
}

// A worker that is killed at any of its crash points: one result, one emitted event, repeats of the outbound call
// under the same key only.
func TestAWorkerKilledAtACrashPointHasOneEffect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		place string
		// crashed is the fate of the first order, which the worker held when it died; the other orders' is the usual.
		crashed fate
	}{
		// The outbound call was made and not recorded: it is made again.
		{crashpoint.AfterStepBeforeCommit, fate{state: "SUCCEEDED", requests: 2, attempt: 2}},
		// The call was recorded, status and emitted event were not: it is not made again.
		{crashpoint.AfterStepBeforeCommit + ":2", fate{state: "SUCCEEDED", requests: 1, attempt: 2}},
		// Everything is recorded: the redelivered message is acknowledged and nothing else.
		{crashpoint.AfterCommitBeforeAck, succeededAtOnce},
	} {
		t.Run(strings.ReplaceAll(c.place, ":", "_pass_"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.workerSpec.Concurrency = 1 // So that the first order is the one that it holds.
			first := w.commit(t, 1)[0]
			w.relay("")
			w.worker(c.place).awaitCrash()
			w.commit(t, 4)
			w.rollBack(t, 2)
			w.worker("")
			w.account(func(o order) fate {
				if o.key() == first.key() {
					return c.crashed
				}
				return succeededAtOnce
			})
		})
	}
}

// A worker that is killed between a dead letter and the message's termination: one dead letter, and the message is
// not delivered for ever.
func TestAWorkerKilledAfterADeadLetterWritesNoSecond(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workerSpec.Concurrency = 1
	poison := w.commit(t, 1)[0]
	w.sink.answering(func(number string, _ int, _ <-chan struct{}) int {
		if number == poison.Number {
			return http.StatusUnprocessableEntity
		}
		return http.StatusOK
	})
	w.relay("")
	w.worker(crashpoint.AfterDeadLetterBeforeTerm).awaitCrash()
	if letters := one[int](w, "SELECT count(*) FROM relayops.dead_letters"); letters != 1 {
		t.Fatalf("%d dead letters at the crash, wanted 1: the crash point lies elsewhere", letters)
	}
	w.commit(t, 3)
	w.worker("")
	w.account(func(o order) fate {
		if o.key() == poison.key() {
			return poisoned
		}
		return succeededAtOnce
	})
}

// The crash point's state at the crash is what its name says. Without this, the tests above could pass with every
// crash point at the same harmless place.
func TestCrashPointsLieWhereTheirNamesSay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		place     string
		published bool
		marked    bool
	}{
		{crashpoint.AfterClaim, false, false},
		{crashpoint.AfterPublishBeforeMark, true, false},
		{crashpoint.BeforeClaimCommit, true, false},
		{crashpoint.AfterMark, true, true},
	} {
		t.Run(c.place, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.commit(t, 3)
			w.relay(c.place).awaitCrash()
			messages := len(w.messages())
			marked := one[int](w, "SELECT count(*) FROM relayops.outbox_events WHERE status = 'PUBLISHED'")
			if found := fmt.Sprint(messages > 0, marked > 0); found != fmt.Sprint(c.published, c.marked) {
				t.Errorf("%d messages and %d marked rows at the crash; wanted some: published %t, marked %t",
					messages, marked, c.published, c.marked)
			}
		})
	}
}

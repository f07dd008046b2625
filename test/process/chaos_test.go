package process_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Two relays and two workers contend all the time while a seeded executioner kills one after the other.
func TestRandomKillsUnderLoad(t *testing.T) {
	t.Parallel()
	const seed, rounds = 20240607, 24
	w := newWorld(t)
	w.workerSpec.MaxAttempts = 100 // A kill costs the attempts that it cuts off; that limit is not the subject here.
	w.sink.answering(flakySink)
	roles := []func(string) *daemon{w.relay, w.relay, w.worker, w.worker}
	running := make([]*daemon, len(roles))
	for i, start := range roles {
		running[i] = start("")
	}
	for _, d := range running {
		d.awaitReady()
	}
	stop := w.load(t, 40, seed)
	defer stop()
	random := rand.New(rand.NewPCG(seed, 1))
	for range rounds {
		time.Sleep(time.Duration(200+random.IntN(600)) * time.Millisecond)
		victim := random.IntN(len(roles))
		running[victim].kill()
		running[victim] = roles[victim]("")
	}
	stop()
	t.Logf("%d orders confirmed", w.confirmedCount())
	w.account(flakyFate)
}

// flakySink refuses every 20th order for good, and fails every fifth on its first request.
func flakySink(number string, nth int, _ <-chan struct{}) int {
	n := numberOf(number)
	switch {
	case n%20 == 0:
		return http.StatusUnprocessableEntity
	case n%5 == 0 && nth == 1:
		return http.StatusServiceUnavailable
	default:
		return http.StatusOK
	}
}

// flakyFate is the fate that flakySink makes. Attempts are left open: kills cost some.
func flakyFate(o order) fate {
	if numberOf(o.Number)%20 == 0 {
		dead := poisoned
		dead.attempt, dead.requests = 0, 0
		return dead
	}
	return succeeded
}

func numberOf(number string) int {
	_, digits, _ := strings.Cut(number, "-")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return n
}

// Two relays contend for the same rows and two workers for the same messages, and nobody is killed: nothing is done
// twice, nothing is counted as a second attempt.
func TestTwoRelaysAndTwoWorkersContend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.relaySpec.BatchSize = 5
	w.commit(t, 150)
	w.rollBack(t, 15)
	relays := []*daemon{w.relay(""), w.relay("")}
	workers := []*daemon{w.worker(""), w.worker("")}
	for _, d := range append(relays, workers...) {
		d.awaitReady()
	}
	eventually(t, func() error {
		w.commit(t, 50)
		for _, relay := range relays {
			if relay.metric("relayops_relay_published_total") == 0 {
				return fmt.Errorf("%s published nothing: nobody contends", relay.name)
			}
		}
		for _, worker := range workers {
			if worker.metric("relayops_attempts_total") == 0 {
				return fmt.Errorf("%s ran nothing: nobody contends", worker.name)
			}
		}
		return nil
	})
	w.account(all(succeededAtOnce))
}

func pause() { time.Sleep(50 * time.Millisecond) }

package process_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/runspec"
)

// A permanent failure is dead at its first attempt, a transient one after the last, never a further one, and neither
// holds up the others or undoes its order.
func TestPermanentFailuresDieAtOnceAndTransientOnesAtTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workerSpec.MaxAttempts = 3
	committed := w.commit(t, 6)
	permanent, transient := committed[1], committed[2]
	w.sink.answering(func(number string, _ int, _ <-chan struct{}) int {
		switch number {
		case permanent.Number:
			return http.StatusUnprocessableEntity
		case transient.Number:
			return http.StatusServiceUnavailable
		default:
			return http.StatusOK
		}
	})
	w.relay("")
	w.worker("")
	w.account(func(o order) fate {
		switch o.key() {
		case permanent.key():
			return poisoned
		case transient.key():
			return fate{state: "DEAD_LETTERED", code: "max_attempts_exceeded", requests: 3, attempt: 3}
		default:
			return succeededAtOnce
		}
	})
}

// An execution whose deadline passed before anybody claimed it is cancelled, and runs nothing.
func TestAPassedDeadlineCancelsAtTheClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workerSpec.Deadline = runspec.Duration(2 * time.Second)
	w.commit(t, 3)
	w.relay("")
	time.Sleep(2500 * time.Millisecond)
	w.worker("")
	w.account(all(fate{state: "CANCELLED", requests: none}))
}

// The same event id in two organisations is two events: two messages, two executions, two keys.
func TestTheSameEventIDInTwoOrganisations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := uuid.Must(uuid.NewV7())
	for i, org := range orgs {
		o := order{Number: "SAME-" + org, Total: i, Customer: confidential, org: org, eventID: id}
		confirmed, err := event.New(org, "OrderConfirmed", o)
		must(t, err)
		confirmed.ID = id
		tx, err := w.pool.Begin(t.Context())
		must(t, err)
		_, err = tx.Exec(t.Context(), "INSERT INTO shop.orders (number, org, event_id) VALUES ($1, $2, $3)",
			o.Number, org, id)
		must(t, err)
		must(t, outbox.Write(t.Context(), tx, confirmed))
		must(t, tx.Commit(t.Context()))
	}
	w.relay("")
	w.worker("")
	w.account(all(succeededAtOnce))
}

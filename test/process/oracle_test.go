package process_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// fate is what has to have become of a committed order.
type fate struct {
	state string
	// code of the dead letter, empty for none.
	code string
	// requests is how often the sink must have seen the order; 0: at least once; none: never.
	requests int
	// attempt is what the ledger must say; 0: anything.
	attempt int
}

const none = -1

var (
	succeeded = fate{state: "SUCCEEDED"}
	// succeededAtOnce: nothing may have been tried twice.
	succeededAtOnce = fate{state: "SUCCEEDED", requests: 1, attempt: 1}
	poisoned        = fate{state: "DEAD_LETTERED", code: "http_status", attempt: 1, requests: 1}
)

// account waits until every committed order is accounted for, and compares everything that there is with what the
// orders' fates call for.
func (w *world) account(fateOf func(order) fate) {
	w.t.Helper()
	var committed []order
	eventually(w.t, func() (err error) {
		ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
		defer cancel()
		committed, err = w.committedOrders(ctx)
		return err
	})
	w.checkCommits(committed)
	if len(committed) == 0 {
		w.t.Fatal("no order was committed: the test shows nothing")
	}
	w.awaitSettled(len(committed))
	w.awaitAcknowledged() // A message that is delivered again has had its chance to do harm.
	messages := w.messages()
	ctx := w.t.Context()
	var wrong faults
	for _, check := range []func(context.Context, []order, func(order) fate) error{
		w.checkLedger, w.checkSteps, w.checkDeadLetters, w.checkEmitted, w.checkSink,
	} {
		wrong = append(wrong, check(ctx, committed, fateOf))
	}
	wrong = append(wrong, w.checkOutbox(ctx, messages), checkStream(committed, fateOf, messages),
		w.checkAbandoned(ctx, messages))
	if err := wrong.err(); err != nil {
		w.t.Fatalf("%d orders committed:\n%v", len(committed), err)
	}
}

// committedOrders reads the shop's table: the truth.
func (w *world) committedOrders(ctx context.Context) ([]order, error) {
	rows, err := w.pool.Query(ctx, "SELECT number, org, event_id FROM shop.orders")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o order, err error) {
		return o, row.Scan(&o.Number, &o.org, &o.eventID)
	})
}

// checkCommits: the database kept what it confirmed, and nothing that was rolled back. Otherwise the test itself is
// broken.
func (w *world) checkCommits(committed []order) {
	w.t.Helper()
	kept := make(map[string]bool)
	for _, o := range committed {
		kept[o.Number] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.confirmed {
		if !kept[o.Number] {
			w.t.Fatalf("PostgreSQL lost order %s, whose commit it had confirmed", o.Number)
		}
	}
	for _, o := range w.abandoned {
		if kept[o.Number] {
			w.t.Fatalf("PostgreSQL kept order %s, which was rolled back", o.Number)
		}
	}
}

// awaitSettled waits until n orders have a terminal execution and no outbox row is pending.
func (w *world) awaitSettled(n int) {
	w.t.Helper()
	eventually(w.t, func() error {
		ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
		defer cancel()
		var terminal, pending int
		err := w.pool.QueryRow(ctx, `SELECT
			(SELECT count(*) FROM shop.orders o JOIN relayops.pipeline_executions e
				ON e.org_id = o.org AND e.event_id = o.event_id WHERE e.state NOT IN ('RUNNING', 'RETRY')),
			(SELECT count(*) FROM relayops.outbox_events WHERE status = 'PENDING')`).Scan(&terminal, &pending)
		if err != nil {
			return err
		}
		if terminal < n || pending > 0 {
			return fmt.Errorf("%d of %d orders settled, %d outbox rows pending", terminal, n, pending)
		}
		return nil
	})
}

// faults collects what is wrong.
type faults []error

func (f *faults) add(format string, arguments ...any) {
	*f = append(*f, fmt.Errorf(format, arguments...))
}

func (f faults) err() error { return errors.Join(f...) }

// all gives every order the same fate.
func all(f fate) func(order) fate { return func(order) fate { return f } }

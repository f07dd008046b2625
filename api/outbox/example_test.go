package outbox_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
)

// The order and its event commit together, or neither does.
func ExampleWrite() {
	ctx := context.Background()
	pool, done := openPool(ctx) // An application opens its own with pgxpool.New.
	defer done()
	pinger := outbox.NewPinger(pool) // One for the whole application.
	defer pinger.Close()

	placeOrder := func(number string, total float64) error {
		confirmed, err := event.New("acme", "OrderConfirmed", map[string]any{"orderNumber": number, "total": total})
		if err != nil {
			return err
		}
		confirmed.AggregateType, confirmed.AggregateID = "Order", number
		if err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			// … tx.Exec(ctx, "INSERT INTO orders …")
			return outbox.Write(ctx, tx, confirmed)
		}); err != nil {
			return err
		}
		pinger.Ping() // After the commit, never inside the transaction.
		return nil
	}

	fmt.Println(placeOrder("A-1", 12.5))
	fmt.Println(placeOrder("A-2", 7))
	var n int
	err := pool.QueryRow(ctx, "SELECT count(*) FROM relayops.outbox_events WHERE status = 'PENDING'").Scan(&n)
	fmt.Println(n, "events wait for the relay", err)
	// Output:
	// <nil>
	// <nil>
	// 2 events wait for the relay <nil>
}

func ExampleWriteSQL() {
	ctx := context.Background()
	db, done := openDB() // An application opens its own with sql.Open.
	defer done()
	confirmed, err := event.New("acme", "OrderConfirmed", map[string]any{"orderNumber": "A-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = tx.Rollback() }() // Does nothing after the commit.
	// … tx.ExecContext(ctx, "INSERT INTO orders …")
	if err := outbox.WriteSQL(ctx, tx, confirmed); err != nil {
		fmt.Println(err)
		return
	}
	if err := tx.Commit(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("committed, pinged:", outbox.PingSQL(ctx, db))
	// Output: committed, pinged: <nil>
}

// An id of the application's own makes a call safe to repeat, and shows when two calls mean different things.
func ExampleConflictError() {
	ctx := context.Background()
	pool, done := openPool(ctx) // An application opens its own with pgxpool.New.
	defer done()
	write := func(total int) error {
		confirmed, err := event.New("acme", "OrderConfirmed", map[string]int{"total": total})
		if err != nil {
			return err
		}
		confirmed.ID = uuid.MustParse("0198c5a0-7c1e-7bb2-8f3a-2f6c1f0d9a11") // Of the request.
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return outbox.Write(ctx, tx, confirmed) })
	}
	fmt.Println(write(10))
	fmt.Println(write(10))
	err := write(11)
	fmt.Println(errors.Is(err, outbox.ErrPayloadConflict))
	// Output:
	// <nil>
	// <nil>
	// true
}

func ExampleWithTable() {
	writer, err := outbox.NewWriter(outbox.WithTable(outbox.Table{
		Name: "OutboxEvent", // As Prisma made it.
		Columns: map[string]string{
			"event_id": "id", "org_id": "orgId", "event_type": "eventType", "occurred_at": "occurredAt",
			"available_at": "availableAt", "status": "", // A mistake: status is required.
		},
	}))
	fmt.Println(writer, err)
	// Output: <nil> table.columns.status: found an empty name, allowed: the table's name for it: this column is required
}

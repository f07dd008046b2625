package outbox_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/testenv"
)

// Two transactions race for one key: the loser waits for the winner's end, and then knows (guarantee 9).
func TestRaceForOneKey(t *testing.T) {
	for name, c := range map[string]struct {
		isolation  pgx.TxIsoLevel
		same       bool
		batch      bool
		commit     bool
		conflict   bool
		serialised bool
	}{
		"another payload, the winner commits":        {pgx.ReadCommitted, false, false, true, true, false},
		"another payload in a batch":                 {pgx.ReadCommitted, false, true, true, true, false},
		"the same payload, the winner commits":       {pgx.ReadCommitted, true, false, true, false, false},
		"another payload, the winner rolls back":     {pgx.ReadCommitted, false, false, false, false, false},
		"another payload, a snapshot from before":    {pgx.RepeatableRead, false, false, true, false, true},
		"the same payload, a snapshot from before":   {pgx.Serializable, true, false, true, false, true},
		"a snapshot, but the winner rolled back too": {pgx.RepeatableRead, false, false, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			databaseURL := testenv.Database(t)
			pool := testenv.Pool(t, databaseURL)
			for _, table := range []outbox.Table{{}, prismaTable(t, pool)} {
				w := writer(t, outbox.WithTable(table))
				first := confirmed(t, "acme", `1`)
				second := first
				if !c.same {
					second.Payload = json.RawMessage(`2`)
				}
				events := []event.Envelope{second}
				if c.batch {
					events = []event.Envelope{confirmed(t, "acme", `3`), second, confirmed(t, "acme", `4`)}
				}
				winner, loser := beginTx(t, pool, pgx.ReadCommitted), beginTx(t, pool, c.isolation)
				if err := w.Write(t.Context(), winner, first); err != nil {
					t.Fatal(err)
				}
				if _, err := loser.Exec(t.Context(), "SELECT 1"); err != nil { // The snapshot, where there is one.
					t.Fatal(err)
				}
				result := make(chan error, 1)
				go func() { result <- w.Write(context.Background(), loser, events...) }()
				awaitBlocked(t, pool, loser)
				end := winner.Rollback
				if c.commit {
					end = winner.Commit
				}
				if err := end(t.Context()); err != nil {
					t.Fatal(err)
				}
				err := <-result
				var conflict *outbox.ConflictError
				switch {
				case c.conflict:
					if !errors.As(err, &conflict) || conflict.EventID != first.ID || conflict.OrgID != "acme" {
						t.Errorf("%s: found %v, want a conflict", table, err)
					}
				case c.serialised:
					var refused *pgconn.PgError
					if !errors.As(err, &refused) || refused.Code != "40001" || errors.Is(err, outbox.ErrPayloadConflict) {
						t.Errorf("%s: found %v, want a serialization failure", table, err)
					}
				case err != nil:
					t.Errorf("%s: found %v", table, err)
				}
				if err := loser.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Many writers of one event at once: one row, and no error for anybody.
func TestManyWritersOfOneEvent(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	one := confirmed(t, "acme", `{"a":1}`)
	results := make(chan error)
	const writers = 16
	for range writers {
		go func() {
			results <- pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
				return outbox.Write(context.Background(), tx, one)
			})
		}()
	}
	for range writers {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := count(t, pool, "SELECT count(*) FROM relayops.outbox_events"); n != 1 {
		t.Fatalf("found %d rows", n)
	}
}

// An ordered writer waits for the other one of its aggregate, whichever way that one came in.
func TestOrderedWriters(t *testing.T) {
	databaseURL := testenv.Database(t)
	pool := testenv.Pool(t, databaseURL)
	ordered := writer(t, outbox.Ordered())
	of := func(aggregate string) event.Envelope {
		e := confirmed(t, "acme", `1`)
		e.AggregateType, e.AggregateID = "Order", aggregate
		return e
	}
	for name, hold := range map[string]func(tx pgx.Tx) error{
		"a writer": func(tx pgx.Tx) error { return ordered.Write(t.Context(), tx, of("1"), of("2"), of("1")) },
		"emit_event": func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `SELECT relayops.emit_event('acme', 'A', '{}', 'Order', '1', ordered => true)`)
			return err
		},
	} {
		first, second, third := beginTx(t, pool, ""), beginTx(t, pool, ""), beginTx(t, pool, "")
		if err := hold(first); err != nil {
			t.Fatal(err)
		}
		if err := ordered.Write(t.Context(), third, of("3")); err != nil {
			t.Fatalf("%s: another aggregate: %v", name, err)
		}
		if err := outbox.Write(t.Context(), third, of("1")); err != nil {
			t.Fatalf("%s: not ordered: %v", name, err)
		}
		result := make(chan error, 1)
		go func() { result <- ordered.Write(context.Background(), second, of("4"), of("1")) }()
		awaitBlocked(t, pool, second)
		for _, tx := range []pgx.Tx{first, third} {
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-result; err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := second.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("pgx", databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ordered.WriteSQL(t.Context(), tx, of("1")), tx.Commit()); err != nil {
		t.Fatal(err)
	}
}

func beginTx(t testing.TB, pool *pgxpool.Pool, isolation pgx.TxIsoLevel) pgx.Tx {
	t.Helper()
	tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: isolation})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

// awaitBlocked waits until a transaction's session waits for a lock.
func awaitBlocked(t testing.TB, pool *pgxpool.Pool, tx pgx.Tx) {
	t.Helper()
	pid := tx.Conn().PgConn().PID()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if count(t, pool, "SELECT cardinality(pg_blocking_pids($1))", pid) > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the second transaction does not wait")
		}
	}
}

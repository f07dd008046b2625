package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/internal/testenv"
)

// exampleTB is as much of a testing.TB as an example has: there is no test to fail, and no end of one.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (*exampleTB) Helper() {}

func (e *exampleTB) Cleanup(cleanup func()) { e.cleanups = append(e.cleanups, cleanup) }

func (*exampleTB) Fatal(arguments ...any) { panic(fmt.Sprint(arguments...)) }

func (*exampleTB) Fatalf(format string, arguments ...any) { panic(fmt.Sprintf(format, arguments...)) }

func (*exampleTB) Errorf(format string, arguments ...any) { panic(fmt.Sprintf(format, arguments...)) }

func (e *exampleTB) done() {
	for _, cleanup := range slices.Backward(e.cleanups) {
		cleanup()
	}
}

func openPool(ctx context.Context) (pool *pgxpool.Pool, done func()) {
	t := &exampleTB{}
	pool, err := pgxpool.New(ctx, testenv.Database(t))
	if err != nil {
		panic(err)
	}
	t.Cleanup(pool.Close)
	return pool, t.done
}

func openDB() (db *sql.DB, done func()) {
	t := &exampleTB{}
	db, err := sql.Open("pgx", testenv.Database(t))
	if err != nil {
		panic(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db, t.done
}

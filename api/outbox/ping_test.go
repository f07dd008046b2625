package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/testenv"
)

// listen gives the notifications that a relay would get.
func listen(t *testing.T, databaseURL string) func(wait time.Duration) int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), "LISTEN "+outbox.Channel); err != nil {
		t.Fatal(err)
	}
	return func(wait time.Duration) (n int) {
		for {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			_, err := conn.WaitForNotification(ctx)
			cancel()
			if err != nil {
				return n
			}
			n++
			wait = 300 * time.Millisecond
		}
	}
}

func TestPingWakesTheListener(t *testing.T) {
	databaseURL := testenv.Database(t)
	pool := testenv.Pool(t, databaseURL)
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	db, err := sql.Open("pgx", databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	heard := listen(t, databaseURL)
	for name, ping := range map[string]func() error{
		"pool":         func() error { return outbox.Ping(t.Context(), pool) },
		"connection":   func() error { return outbox.Ping(t.Context(), conn) },
		"database/sql": func() error { return outbox.PingSQL(t.Context(), db) },
	} {
		if err := ping(); err != nil {
			t.Fatal(err)
		}
		if n := heard(10 * time.Second); n != 1 {
			t.Errorf("%s: heard %d pings", name, n)
		}
	}
}

// Inside a transaction a NOTIFY would serialise the commits of everybody.
func TestPingInATransactionIsRefused(t *testing.T) {
	databaseURL := testenv.Database(t)
	pool := testenv.Pool(t, databaseURL)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	db, err := sql.Open("pgx", databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	sqlTx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sqlTx.Rollback() }()
	for name, err := range map[string]error{
		"pgx.Tx": outbox.Ping(t.Context(), tx), "pooled": outbox.Ping(t.Context(), conn),
		"its connection": outbox.Ping(t.Context(), conn.Conn()), "sql.Tx": outbox.PingSQL(t.Context(), sqlTx),
	} {
		if !errors.Is(err, outbox.ErrInTransaction) {
			t.Errorf("%s: found %v", name, err)
		}
	}
}

func TestPingerMakesOnePingOfMany(t *testing.T) {
	databaseURL := testenv.Database(t)
	heard := listen(t, databaseURL)
	pinger := outbox.NewPinger(testenv.Pool(t, databaseURL))
	defer pinger.Close()
	start := time.Now()
	for range 100_000 {
		pinger.Ping()
	}
	asked := time.Since(start)
	n := heard(10 * time.Second)
	if most := int(asked/(10*time.Millisecond)) + 2; n < 1 || n > most {
		t.Errorf("100,000 asked within %v, heard %d pings, want 1 to %d", asked, n, most)
	}
	pinger.Ping()
	if n := heard(10 * time.Second); n != 1 {
		t.Errorf("one more asked, heard %d", n)
	}
}

// slow is a database whose pings last as long as the test wants.
type slow struct {
	began   chan struct{}
	release chan error
	done    atomic.Int64
}

func (s *slow) Exec(ctx context.Context, _ string, _ ...any) (pgconn.CommandTag, error) {
	s.began <- struct{}{}
	select {
	case err := <-s.release:
		s.done.Add(1)
		return pgconn.CommandTag{}, err
	case <-ctx.Done():
		return pgconn.CommandTag{}, ctx.Err()
	}
}

func (s *slow) awaitPing(t *testing.T) {
	t.Helper()
	select {
	case <-s.began:
	case <-time.After(10 * time.Second):
		t.Fatal("no ping began")
	}
}

// A ping that is asked for while one is under way may come too late for that one: another has to follow.
func TestPingAskedForMeanwhileFollows(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	db := &slow{began: make(chan struct{}, 10), release: make(chan error)}
	failures := make(chan error, 10)
	pinger := outbox.NewPinger(db, outbox.OnPingError(func(err error) { failures <- err }))
	defer pinger.Close()
	pinger.Ping()
	db.awaitPing(t)
	for range 1000 {
		pinger.Ping() // None of them waits.
	}
	db.release <- errors.New("away")
	if err := <-failures; err == nil {
		t.Error("no error was reported")
	}
	db.awaitPing(t) // The one that serves the thousand.
	db.release <- nil
	select {
	case <-db.began:
		t.Error("a third ping")
	case <-time.After(100 * time.Millisecond):
	}
	pinger.Ping()
	db.awaitPing(t)
	pinger.Close() // Cuts the hanging ping off.
	pinger.Close()
	pinger.Ping()
	if n := db.done.Load(); n != 2 || len(failures) != 0 {
		t.Errorf("%d pings ended, %d failures", n, len(failures))
	}
}

package outbox_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/testenv"
)

// session is a transaction of either kind, with what a test does with it.
type session struct {
	write    func(w *outbox.Writer, events ...event.Envelope) error
	exec     func(statement string) error
	commit   func() error
	rollback func() error
}

// kinds are the ways into the outbox: pgx in each mode that a pooler may ask for, and database/sql.
var kinds = map[string]func(t *testing.T, databaseURL string) func() session{
	"pgx":                 openPgx(pgx.QueryExecModeCacheStatement),
	"pgx exec":            openPgx(pgx.QueryExecModeExec),
	"pgx simple protocol": openPgx(pgx.QueryExecModeSimpleProtocol),
	"database/sql":        openSQL,
}

func openPgx(mode pgx.QueryExecMode) func(t *testing.T, databaseURL string) func() session {
	return func(t *testing.T, databaseURL string) func() session {
		t.Helper()
		config, err := pgxpool.ParseConfig(databaseURL)
		if err != nil {
			t.Fatal(err)
		}
		config.ConnConfig.DefaultQueryExecMode = mode
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return func() session {
			ctx := context.Background()
			tx, err := pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tx.Rollback(ctx) }) // A test that fails leaves it open, and the pool would wait.
			return session{
				write:    func(w *outbox.Writer, events ...event.Envelope) error { return w.Write(ctx, tx, events...) },
				exec:     func(statement string) error { _, err := tx.Exec(ctx, statement); return err },
				commit:   func() error { return tx.Commit(ctx) },
				rollback: func() error { return tx.Rollback(ctx) },
			}
		}
	}
}

func openSQL(t *testing.T, databaseURL string) func() session {
	t.Helper()
	db, err := sql.Open("pgx", databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return func() session {
		ctx := context.Background()
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback() })
		return session{
			write:    func(w *outbox.Writer, events ...event.Envelope) error { return w.WriteSQL(ctx, tx, events...) },
			exec:     func(statement string) error { _, err := tx.ExecContext(ctx, statement); return err },
			commit:   tx.Commit,
			rollback: tx.Rollback,
		}
	}
}

var _ = stdlib.GetDefaultDriver // Registers "pgx" with database/sql.

// forEachKind runs test for each way into the outbox, in a database of its own.
func forEachKind(t *testing.T, test func(t *testing.T, pool *pgxpool.Pool, begin func() session)) {
	t.Helper()
	for name := range kinds {
		forKind(t, name, test)
	}
}

// forBothInterfaces is forEachKind for what takes long: pgx as it comes, and database/sql.
func forBothInterfaces(t *testing.T, test func(t *testing.T, pool *pgxpool.Pool, begin func() session)) {
	t.Helper()
	forKind(t, "pgx", test)
	forKind(t, "database/sql", test)
}

func forKind(t *testing.T, name string, test func(t *testing.T, pool *pgxpool.Pool, begin func() session)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		databaseURL := testenv.Database(t)
		test(t, testenv.Pool(t, databaseURL), kinds[name](t, databaseURL))
	})
}

func writer(t testing.TB, options ...outbox.Option) *outbox.Writer {
	t.Helper()
	w, err := outbox.NewWriter(options...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// confirmed is a new event of org with payload.
func confirmed(t testing.TB, org, payload string) event.Envelope {
	t.Helper()
	made, err := event.New(org, "OrderConfirmed", json.RawMessage(payload))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// commitEvents writes events in one committed transaction.
func commitEvents(t testing.TB, pool *pgxpool.Pool, w *outbox.Writer, events ...event.Envelope) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return w.Write(t.Context(), tx, events...) })
	if err != nil {
		t.Fatal(err)
	}
}

// stored reads an event back, the way a relay does.
func stored(t testing.TB, pool *pgxpool.Pool, table outbox.Table, id uuid.UUID, org string) (
	e event.Envelope, found bool,
) {
	t.Helper()
	idColumn, _ := table.Column("event_id")
	orgColumn, _ := table.Column("org_id")
	var idText, payload, headers string
	var occurredAt *int64
	rows, err := pool.Query(t.Context(), "SELECT "+table.Read("o", "event_id")+", "+table.Read("o", "org_id")+", "+
		table.Read("o", "event_type")+", "+table.Read("o", "event_version")+", "+table.Read("o", "aggregate_type")+", "+
		table.Read("o", "aggregate_id")+", "+table.Read("o", "correlation_id")+", "+table.Read("o", "causation_id")+", "+
		table.Read("o", "payload")+", "+table.Read("o", "headers")+", "+table.Read("o", "occurred_at")+
		" FROM "+table.Identifier()+" o WHERE o."+idColumn+"::text = $1 AND o."+orgColumn+"::text = $2", id.String(), org)
	if err != nil {
		t.Fatal(err)
	}
	count, err := pgx.ForEachRow(rows, []any{
		&idText, &e.OrgID, &e.EventType, &e.EventVersion, &e.AggregateType, &e.AggregateID, &e.CorrelationID,
		&e.CausationID, &payload, &headers, &occurredAt,
	}, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if count.RowsAffected() == 0 {
		return e, false
	}
	e.ID, e.Payload = uuid.MustParse(idText), json.RawMessage(payload)
	if err := json.Unmarshal([]byte(headers), &e.Headers); err != nil {
		t.Fatal(err)
	}
	if occurredAt != nil {
		e.OccurredAt = time.UnixMicro(*occurredAt).UTC()
	}
	return e, true
}

func count(t testing.TB, pool *pgxpool.Pool, query string, arguments ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), query, arguments...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

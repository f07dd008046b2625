package outbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/testenv"
)

func TestSetUpErrorsSayWhatToDo(t *testing.T) {
	databaseURL := testenv.Database(t)
	pool := testenv.Pool(t, databaseURL)
	empty := testenv.Pool(t, testenv.EmptyDatabase(t))
	mapped := prismaTable(t, pool)
	misspelt := mapped
	misspelt.Columns = map[string]string{"event_id": "identifier"}
	one := confirmed(t, "acme", `1`)
	role := "role_" + uuid.NewString()[:8]
	if _, err := pool.Exec(t.Context(), "CREATE ROLE "+role+"; GRANT USAGE ON SCHEMA relayops TO "+role); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pool.Exec(context.Background(), "DROP OWNED BY "+role+"; DROP ROLE "+role); err != nil {
			t.Error(err)
		}
	})
	for name, c := range map[string]struct {
		write func() error
		want  string
	}{
		"no schema": {func() error { return outbox.Write(t.Context(), beginTx(t, empty, ""), one) }, "relayops migrate up"},
		"no table": {func() error {
			return writer(t, outbox.WithTable(mapped)).Write(t.Context(), beginTx(t, empty, ""), one)
		}, "check WithTable"},
		"no column": {func() error {
			return writer(t, outbox.WithTable(misspelt)).Write(t.Context(), beginTx(t, pool, ""), one)
		}, "a column is not there"},
		"no rights": {func() error {
			tx := beginTx(t, pool, "")
			if _, err := tx.Exec(t.Context(), "SET LOCAL ROLE "+role); err != nil {
				return err
			}
			return outbox.Write(t.Context(), tx, one)
		}, "docs/producers.md"},
		"a value missing": {func() error {
			tx := beginTx(t, pool, "")
			if _, err := tx.Exec(t.Context(), `ALTER TABLE public."OutboxEvent" ADD shard integer NOT NULL`); err != nil {
				return err
			}
			return writer(t, outbox.WithTable(mapped)).Write(t.Context(), tx, one)
		}, "column shard"},
		"read-only": {func() error {
			tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{AccessMode: pgx.ReadOnly})
			if err != nil {
				return err
			}
			t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
			return outbox.Write(t.Context(), tx, one)
		}, "the transaction is read-only"},
	} {
		if err := c.write(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: found %v, want one that says %q", name, err, c.want)
		}
	}
}

// The rights of docs/producers.md for the Go package.
func TestWriterNeedsTheDocumentedRightsOnly(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	role := "role_" + uuid.NewString()[:8]
	if _, err := pool.Exec(t.Context(), `CREATE ROLE `+role+`; GRANT USAGE ON SCHEMA relayops TO `+role+`;
		GRANT INSERT (event_id, org_id, event_type, event_version, aggregate_type, aggregate_id, correlation_id,
			causation_id, payload, headers, occurred_at), SELECT (org_id, event_id, payload_sha256)
		ON relayops.outbox_events TO `+role); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pool.Exec(context.Background(), "DROP OWNED BY "+role+"; DROP ROLE "+role); err != nil {
			t.Error(err)
		}
	})
	tx := beginTx(t, pool, "")
	if _, err := tx.Exec(t.Context(), "SET LOCAL ROLE "+role); err != nil {
		t.Fatal(err)
	}
	one, other := confirmed(t, "acme", `1`), confirmed(t, "acme", `2`)
	for _, events := range [][]event.Envelope{{one}, {one}, {one, other}} {
		if err := outbox.Write(t.Context(), tx, events...); err != nil {
			t.Fatal(err)
		}
	}
	other.Payload = one.Payload
	if err := outbox.Write(t.Context(), tx, other); !errors.Is(err, outbox.ErrPayloadConflict) {
		t.Fatalf("found %v", err)
	}
}

package schema_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/internal/schema"
	"github.com/relayops/relayops/internal/testenv"
)

func TestMigrateTwice(t *testing.T) {
	conn := connect(t, testenv.EmptyDatabase(t))
	if err := schema.Check(t.Context(), conn); !isOutdated(err, 0) {
		t.Fatalf("before: %v", err)
	}
	before, err := schema.Status(t.Context(), conn)
	if err != nil || len(before) != schema.Version() || before[0].AppliedAt != nil {
		t.Fatalf("status before: %+v, %v", before, err)
	}
	applied, err := schema.Migrate(t.Context(), conn)
	if err != nil || len(applied) != schema.Version() || applied[0].AppliedAt == nil {
		t.Fatalf("first: %+v, %v", applied, err)
	}
	again, err := schema.Migrate(t.Context(), conn)
	if err != nil || len(again) != 0 {
		t.Fatalf("again: %+v, %v", again, err)
	}
	if err := schema.Check(t.Context(), conn); err != nil {
		t.Fatalf("after: %v", err)
	}
	after, err := schema.Status(t.Context(), conn)
	if err != nil || !after[0].AppliedAt.Equal(*applied[0].AppliedAt) {
		t.Fatalf("status after: %+v, %v", after, err)
	}
}

func isOutdated(err error, found int) bool {
	var outdated *schema.OutdatedError
	return errors.As(err, &outdated) && outdated.Found == found && strings.Contains(err.Error(), "relayops migrate up")
}

func TestEightMigrateAtOnce(t *testing.T) {
	// The worst default that a role may have: a snapshot from before the wait for the lock.
	databaseURL := testenv.EmptyDatabase(t) + "&default_transaction_isolation=serializable"
	if !strings.Contains(databaseURL, "?") {
		databaseURL = strings.Replace(databaseURL, "&", "?", 1)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for range 8 {
		wg.Go(func() {
			ctx := context.Background()
			conn, err := pgx.Connect(ctx, databaseURL)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close(ctx) }()
			applied, err := schema.Migrate(ctx, conn)
			if err != nil {
				t.Errorf("one of eight: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			total += len(applied)
		})
	}
	wg.Wait()
	if total != schema.Version() {
		t.Fatalf("the eight applied %d migrations, want %d", total, schema.Version())
	}
	if err := schema.Check(t.Context(), connect(t, databaseURL)); err != nil {
		t.Fatal(err)
	}
}

// Through PgBouncer in transaction mode there are no named statements, and no session that outlives a transaction.
func TestMigrateInEveryQueryMode(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) {
			config, err := pgxpool.ParseConfig(testenv.EmptyDatabase(t))
			if err != nil {
				t.Fatal(err)
			}
			config.ConnConfig.DefaultQueryExecMode = mode
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			if _, err := schema.Migrate(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			if n := queryInt(t, pool, "SELECT count(*) FROM pg_prepared_statements"); n != 0 {
				t.Errorf("found %d prepared statements", n)
			}
			if n := queryInt(t, pool, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"); n != 0 {
				t.Errorf("found %d advisory locks after the end", n)
			}
		})
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	conn := connect(t, testenv.Database(t))
	exec(t, conn, "INSERT INTO relayops.schema_migrations (version, name, checksum) VALUES (9999, 'future', 'x')")
	_, migrateErr := schema.Migrate(t.Context(), conn)
	_, statusErr := schema.Status(t.Context(), conn)
	for name, err := range map[string]error{
		"migrate": migrateErr, "status": statusErr, "check": schema.Check(t.Context(), conn),
	} {
		var newer *schema.NewerError
		if !errors.As(err, &newer) || newer.Found != 9999 || newer.Known != schema.Version() {
			t.Errorf("%s: found %v", name, err)
		}
	}
}

func TestChangedChecksumIsRefused(t *testing.T) {
	conn := connect(t, testenv.Database(t))
	exec(t, conn, "UPDATE relayops.schema_migrations SET checksum = 'abc' WHERE version = 1")
	_, err := schema.Migrate(t.Context(), conn)
	var changed *schema.ChecksumError
	if !errors.As(err, &changed) || changed.Recorded != "abc" || changed.Migration.Version != 1 {
		t.Fatalf("found %v", err)
	}
	if err := schema.Check(t.Context(), conn); !errors.As(err, &changed) {
		t.Fatalf("check: %v", err)
	}
}

func TestMissingRightsNameTheGrant(t *testing.T) {
	t.Run("create a schema", func(t *testing.T) {
		databaseURL := testenv.EmptyDatabase(t)
		exec(t, connect(t, databaseURL), `DO $$ BEGIN
			EXECUTE format('REVOKE CREATE ON DATABASE %I FROM PUBLIC', current_database()); END $$`)
		conn, role := as(t, databaseURL)
		_, err := schema.Migrate(t.Context(), conn)
		wantGrant(t, err, role, "GRANT CREATE ON DATABASE")
	})
	t.Run("create tables", func(t *testing.T) {
		databaseURL := testenv.EmptyDatabase(t)
		exec(t, connect(t, databaseURL), "CREATE SCHEMA relayops")
		conn, role := as(t, databaseURL, "GRANT USAGE ON SCHEMA relayops")
		_, err := schema.Migrate(t.Context(), conn)
		wantGrant(t, err, role, "GRANT USAGE, CREATE ON SCHEMA relayops")
	})
	t.Run("read the record", func(t *testing.T) {
		databaseURL := testenv.Database(t)
		conn, role := as(t, databaseURL)
		_, err := schema.Migrate(t.Context(), conn)
		wantGrant(t, err, role, "GRANT SELECT ON relayops.schema_migrations")
		wantGrant(t, schema.Check(t.Context(), conn), role, "GRANT SELECT ON relayops.schema_migrations")
	})
	t.Run("a prepared schema is enough", func(t *testing.T) {
		databaseURL := testenv.EmptyDatabase(t)
		exec(t, connect(t, databaseURL), "CREATE SCHEMA relayops")
		conn, _ := as(t, databaseURL, "GRANT USAGE, CREATE ON SCHEMA relayops")
		if _, err := schema.Migrate(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("up to date needs none", func(t *testing.T) {
		conn, _ := as(t, testenv.Database(t), "GRANT USAGE ON SCHEMA relayops", "GRANT SELECT ON relayops.schema_migrations")
		if _, err := schema.Migrate(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
	})
}

func wantGrant(t *testing.T, err error, role, grant string) {
	t.Helper()
	var refused *schema.PrivilegeError
	if !errors.As(err, &refused) || refused.Role != role || !strings.Contains(err.Error(), grant) ||
		!strings.Contains(refused.Grant, role) {
		t.Fatalf("found %v, want one that says %s to %s", err, grant, role)
	}
}

// A read-only session may ask how far the schema is.
func TestStatusWritesNothing(t *testing.T) {
	conn := connect(t, testenv.EmptyDatabase(t))
	exec(t, conn, "SET default_transaction_read_only TO on")
	if _, err := schema.Status(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	if n := queryInt(t, conn, "SELECT count(*) FROM pg_namespace WHERE nspname = 'relayops'"); n != 0 {
		t.Fatal("status made the schema")
	}
}

func TestOtherEncodingIsRefused(t *testing.T) {
	conn := connect(t, testenv.EmptyDatabase(t))
	name := "latin_" + randomSuffix()
	exec(t, conn, "CREATE DATABASE "+name+" ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
	t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	config := conn.Config().Copy()
	config.Database = name
	other, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close(context.Background()) }()
	if _, err := schema.Migrate(t.Context(), other); err == nil || !strings.Contains(err.Error(), "allowed: UTF8") {
		t.Fatalf("found %v", err)
	}
}

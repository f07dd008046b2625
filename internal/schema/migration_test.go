package schema_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/internal/schema"
	"github.com/relayops/relayops/internal/testenv"
)

func TestLoadRefusesABadDirectory(t *testing.T) {
	for name, names := range map[string][]string{
		"a gap":      {"0001_a.sql", "0003_b.sql"},
		"from two":   {"0002_a.sql"},
		"twice":      {"0001_a.sql", "0001_b.sql"},
		"a bad name": {"1_a.sql"},
		"no SQL":     {"0001_a.txt"},
	} {
		dir := fstest.MapFS{}
		for _, file := range names {
			dir["migrations/"+file] = &fstest.MapFile{Data: []byte("SELECT 1")}
		}
		if _, err := schema.Load(dir); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A migration that fails leaves those before it, and nothing of its own.
func TestFailedMigrationRollsBackAlone(t *testing.T) {
	ctx, conn := t.Context(), connect(t, testenv.EmptyDatabase(t))
	three := []schema.Migration{
		schema.NewMigration(1, "one", "CREATE TABLE relayops.one ()"),
		schema.NewMigration(2, "two", "CREATE TABLE relayops.two (); SELECT 1/0"),
		schema.NewMigration(3, "three", "CREATE TABLE relayops.three ()"),
	}
	applied, err := schema.MigrateTo(ctx, conn, three)
	if err == nil || len(applied) != 1 || !strings.Contains(err.Error(), "0002_two") {
		t.Fatalf("applied %d, %v", len(applied), err)
	}
	if tables := tablesOf(t, conn); tables != "one,schema_migrations" {
		t.Fatalf("found %s", tables)
	}
	three[1] = schema.NewMigration(2, "two", "CREATE TABLE relayops.two ()")
	applied, err = schema.MigrateTo(ctx, conn, three)
	if err != nil || len(applied) != 2 {
		t.Fatalf("second try: applied %d, %v", len(applied), err)
	}
	if tables := tablesOf(t, conn); tables != "one,schema_migrations,three,two" {
		t.Fatalf("found %s", tables)
	}
	if _, err := schema.StatusAgainst(ctx, conn, three[:2]); !errors.As(err, new(*schema.NewerError)) {
		t.Fatalf("an older binary: %v", err)
	}
}

func tablesOf(t *testing.T, conn *pgx.Conn) (names string) {
	t.Helper()
	err := conn.QueryRow(t.Context(), `SELECT string_agg(relname::text, ',' ORDER BY relname) FROM pg_class
		WHERE relnamespace = 'relayops'::regnamespace AND relkind = 'r'`).Scan(&names)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// What a migration's own search_path would find first must not be found.
func TestMigrationsIgnoreTheCallersSearchPath(t *testing.T) {
	ctx, conn := t.Context(), connect(t, testenv.EmptyDatabase(t))
	if _, err := conn.Exec(ctx, `CREATE SCHEMA evil; CREATE DOMAIN evil.text AS integer;
		CREATE FUNCTION evil.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT ''\x00''::bytea';
		SET search_path TO evil, pg_catalog`); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Migrate(ctx, conn); err != nil {
		t.Fatal(err)
	}
	var hash string
	err := conn.QueryRow(ctx, `INSERT INTO relayops.outbox_events (org_id, event_type, payload)
		VALUES ('acme', 'A', '{}') RETURNING encode(payload_sha256, 'hex')`).Scan(&hash)
	if err != nil || hash != "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" {
		t.Fatalf("found %s, %v", hash, err)
	}
}

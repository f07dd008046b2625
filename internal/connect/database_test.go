package connect

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/testenv"
)

func setting(t *testing.T, row pgx.Row) string {
	t.Helper()
	var value string
	if err := row.Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestDatabaseIsLazy(t *testing.T) {
	pool, err := Database(t.Context(), runspec.Database{URL: "postgres://u@127.0.0.1:1/none", MaxConnections: 2}, "test")
	if err != nil {
		t.Fatalf("opening fails while the server is away: %v", err)
	}
	defer pool.Close()
	if err := pool.Ping(t.Context()); err == nil {
		t.Fatal("nothing listens there, and Ping succeeds")
	} else if text := Explain(err).Error(); !strings.Contains(text, "nothing listens there") {
		t.Errorf("advice: %s", text)
	}
}

func TestDatabaseFollowsTheFile(t *testing.T) {
	first, second := testenv.EmptyDatabase(t), testenv.EmptyDatabase(t)
	file := filepath.Join(t.TempDir(), "url")
	spec := runspec.Database{URLFile: file, MaxConnections: 2}
	pool, err := Database(t.Context(), spec, "test-daemon")
	if err != nil {
		t.Fatalf("opening fails while the Secret is missing: %v", err)
	}
	defer pool.Close()
	err = pool.Ping(t.Context())
	if err == nil || !strings.Contains(Explain(err).Error(), "the file "+file+" is missing") {
		t.Fatalf("missing file: %v", Explain(err))
	}
	for _, database := range []string{first, second} {
		if err := os.WriteFile(file, []byte(database+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		pool.Reset()
		got := setting(t, pool.QueryRow(t.Context(), "SELECT current_database()"))
		if parsed, _ := url.Parse(database); parsed.Path != "/"+got {
			t.Errorf("connected to %s, want %s", got, database)
		}
	}
	for name, want := range map[string]string{"application_name": "test-daemon", "timezone": "UTC"} {
		if got := setting(t, pool.QueryRow(t.Context(), "SELECT current_setting($1)", name)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	conn, err := Listen(t.Context(), spec, "test-listen")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if got := setting(t, conn.QueryRow(t.Context(), "SHOW application_name")); got != "test-listen" {
		t.Errorf("application_name: %q", got)
	}
}

func TestPooledDatabaseUsesNoNamedStatements(t *testing.T) {
	database := testenv.EmptyDatabase(t)
	pool, err := Database(t.Context(), runspec.Database{URL: database, MaxConnections: 2, DisableListen: true}, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var n int
	for range 3 {
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_prepared_statements WHERE $1 <> ''", "x").Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	if n != 0 {
		t.Errorf("%d prepared statements, want none", n)
	}
}

func TestDatabaseSources(t *testing.T) {
	for name, test := range map[string]struct {
		spec runspec.Database
		want string
	}{
		"none":      {runspec.Database{}, "found none of them, allowed: exactly one of url, urlFile and urlEnv"},
		"two":       {runspec.Database{URL: "x", URLEnv: "Y"}, "found url and urlEnv"},
		"empty env": {runspec.Database{URLEnv: "RELAYOPS_TEST_UNSET"}, "environment variable RELAYOPS_TEST_UNSET: found nothing"},
		"no URL":    {runspec.Database{URL: "postgres://u:secret@host:port/db"}, "database URL"},
	} {
		_, err := Database(t.Context(), test.spec, "test")
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error holds the password: %v", name, err)
		}
	}
}

func TestExplainDatabase(t *testing.T) {
	database := testenv.EmptyDatabase(t)
	withPath := func(path string) string {
		parsed, err := url.Parse(database)
		if err != nil {
			t.Fatal(err)
		}
		parsed.Path = path
		return parsed.String()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := pgx.Connect(ctx, withPath("/no_such_database")); err == nil ||
		!strings.Contains(Explain(err).Error(), `create the database "no_such_database"`) {
		t.Errorf("missing database: %v", Explain(err))
	}
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(ctx, "SELECT FROM relayops.outbox_events"); err == nil ||
		!strings.Contains(Explain(err).Error(), "relayops migrate up") {
		t.Errorf("missing schema: %v", Explain(err))
	}
}

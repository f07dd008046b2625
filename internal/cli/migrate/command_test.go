package migrate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/internal/cli/migrate"
	"github.com/relayops/relayops/internal/schema"
	"github.com/relayops/relayops/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func run(t *testing.T, databaseURL string, arguments ...string) (stdout string, err error) {
	t.Helper()
	t.Setenv("DATABASE_URL", databaseURL)
	cmd := migrate.New()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(arguments, "--data-dir", t.TempDir()))
	err = cmd.ExecuteContext(context.Background())
	return out.String(), err
}

func TestUpAndStatus(t *testing.T) {
	databaseURL := testenv.EmptyDatabase(t)
	steps := []struct {
		arguments []string
		want      string
	}{
		{[]string{"status"}, `(?m)^0001 +data_plane +not applied: run relayops migrate up$`},
		{[]string{"up"}, `(?s)^applied 0001_data_plane\n.*schema version \d+: up to date\n$`},
		{[]string{"up"}, `^schema version \d+: up to date\n$`},
		{[]string{"up", "-o", "json"}, `^\[\]\n$`},
		{[]string{"status"}, `(?m)^0001 +data_plane +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`},
	}
	for _, step := range steps {
		out, err := run(t, databaseURL, step.arguments...)
		if err != nil || !regexp.MustCompile(step.want).MatchString(out) {
			t.Fatalf("%v: found %q, %v", step.arguments, out, err)
		}
	}
	out, err := run(t, databaseURL, "status", "-o", "json")
	var listed []schema.Migration
	if err != nil || json.Unmarshal([]byte(out), &listed) != nil || len(listed) != schema.Version() ||
		listed[0].AppliedAt == nil || listed[0].Name != "data_plane" {
		t.Fatalf("found %s, %v", out, err)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	databaseURL := testenv.Database(t)
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(),
		"INSERT INTO relayops.schema_migrations VALUES (9999, 'future', 'x')"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	parsed, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	missing, refused := *parsed, *parsed
	missing.Path = "/no_such_database"
	refused.User = url.UserPassword("no_such_role", "no-such-password")
	for name, c := range map[string]struct{ databaseURL, want string }{
		"a newer schema":     {databaseURL, "run a newer version of RelayOps"},
		"no database":        {missing.String(), "create the database"},
		"a refused password": {refused.String(), "no_such_role"},
		"nobody listens":     {"postgres://u:no-such-password@127.0.0.1:1/x", "127.0.0.1"},
		"no URL":             {"", "--database-url"},
	} {
		_, err := run(t, c.databaseURL, "up")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: found %v, want one that says %q", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "no-such-password") {
			t.Errorf("%s: the error shows the password: %v", name, err)
		}
	}
}

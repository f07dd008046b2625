package emit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/cli/emit"
	"github.com/relayops/relayops/internal/devstate"
	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func run(t *testing.T, databaseURL, stdin string, arguments ...string) (stdout string, err error) {
	t.Helper()
	t.Setenv("DATABASE_URL", databaseURL)
	cmd := emit.New()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(arguments)
	err = cmd.ExecuteContext(context.Background())
	return out.String(), err
}

func open(t *testing.T, databaseURL string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestEmitCommitsAndPings(t *testing.T) {
	databaseURL := testenv.Database(t)
	conn := open(t, databaseURL)
	if _, err := conn.Exec(t.Context(), "LISTEN "+outbox.Channel); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "order.json")
	if err := os.WriteFile(file, []byte(`{"from": "file"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ payload, stdin, want string }{
		"given":  {`{"from":"flag"}`, "", `{"from": "flag"}`},
		"a file": {"@" + file, "", `{"from": "file"}`},
		"stdin":  {"-", `{"from":"stdin"}` + "\n", `{"from": "stdin"}`},
		"null":   {"null", "", "null"},
	} {
		out, err := run(t, databaseURL, c.stdin, "--org", "a/b c", "--type", "OrderConfirmed", "--payload", c.payload,
			"--aggregate-type", "Order", "--aggregate-id", "7", "--correlation-id", "x", "--causation-id", "y",
			"--event-version", "2", "--header", "note=a=b", "--header", "empty=")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		id, err := uuid.Parse(strings.TrimSuffix(out, "\n"))
		if err != nil {
			t.Fatalf("%s: printed %q", name, out)
		}
		var found bool
		if err := conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM relayops.outbox_events WHERE event_id = $1
			AND org_id = 'a/b c' AND payload::text = $2 AND aggregate_id = '7' AND correlation_id = 'x'
			AND causation_id = 'y' AND event_version = 2 AND headers = '{"note": "a=b", "empty": ""}')`, id, c.want).
			Scan(&found); err != nil || !found {
			t.Errorf("%s: the row is not as given: %v", name, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if _, err := conn.WaitForNotification(ctx); err != nil {
			t.Errorf("%s: no ping: %v", name, err)
		}
		cancel()
	}
}

func TestEmitPrintsJSON(t *testing.T) {
	databaseURL := testenv.Database(t)
	const id = "0198c5a0-7c1e-7bb2-8f3a-2f6c1f0d9a11"
	out, err := run(t, databaseURL, "", "--org", "acme", "--type", "A", "--payload", `{"a":1}`, "--id", id, "-o", "json")
	var printed event.Envelope
	if err != nil || json.Unmarshal([]byte(out), &printed) != nil || printed.ID.String() != id || printed.OrgID != "acme" {
		t.Fatalf("found %s, %v", out, err)
	}
	again := []string{"--org", "acme", "--type", "A", "--id", id, "--payload"}
	if _, err := run(t, databaseURL, "", append(again, `{ "a": 1 }`)...); err != nil {
		t.Fatalf("the same again: %v", err)
	}
	_, err = run(t, databaseURL, "", append(again, `{"a":2}`)...)
	if err == nil || !strings.Contains(err.Error(), "exists with another payload") {
		t.Fatalf("another payload: %v", err)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	databaseURL := testenv.Database(t)
	good := []string{"--org", "acme", "--type", "A", "--payload", "1"}
	large := `"` + strings.Repeat("x", 10_000_000) + `"`
	for name, c := range map[string]struct {
		arguments   []string
		stdin, want string
	}{
		"no org":         {[]string{"--type", "A", "--payload", "1"}, "", `"org"`},
		"an empty org":   {[]string{"--org", "", "--type", "A", "--payload", "1"}, "", "orgId: found nothing"},
		"a bad type":     {[]string{"--org", "a", "--type", "a b", "--payload", "1"}, "", "eventType"},
		"no JSON":        {[]string{"--org", "a", "--type", "A", "--payload", "{"}, "", "payload"},
		"no such file":   {[]string{"--org", "a", "--type", "A", "--payload", "@/no/such/file"}, "", "/no/such/file"},
		"10 MB":          {[]string{"--org", "a", "--type", "A", "--payload", "-"}, large, "at most 8388608 bytes"},
		"a bad id":       {append(good, "--id", "7"), "", "--id"},
		"no pair":        {append(good, "--header", "a"), "", "key=value"},
		"a header twice": {append(good, "--header", "a=1", "--header", "a=2"), "", "twice"},
		"a bad header":   {append(good, "--header", "A=1"), "", "headers"},
		"version 0":      {append(good, "--event-version", "0"), "", "eventVersion"},
		"a bad format":   {append(good, "-o", "yaml"), "", "text or json"},
		"no such relay":  {append(good, "--relay", "x"), "", "--relay"},
	} {
		if out, err := run(t, databaseURL, c.stdin, c.arguments...); err == nil || !strings.Contains(err.Error(), c.want) ||
			out != "" {
			t.Errorf("%s: found %q, %.300v, want an error that says %q", name, out, err, c.want)
		}
	}
	var n int
	err := open(t, databaseURL).QueryRow(t.Context(), "SELECT count(*) FROM relayops.outbox_events").Scan(&n)
	if err != nil || n != 0 {
		t.Errorf("found %d rows, %v", n, err)
	}
}

func TestMissingSchemaSaysWhatToDo(t *testing.T) {
	_, err := run(t, testenv.EmptyDatabase(t), "", "--org", "acme", "--type", "A", "--payload", "1")
	if err == nil || !strings.Contains(err.Error(), "relayops migrate up") {
		t.Fatalf("found %v", err)
	}
}

// relayops dev tells of its relays' tables: the event goes to the outbox that a relay reads.
func TestEmitFollowsTheRelaysTable(t *testing.T) {
	databaseURL := testenv.Database(t)
	conn := open(t, databaseURL)
	if _, err := conn.Exec(t.Context(), `CREATE TABLE public.events (LIKE relayops.outbox_events INCLUDING ALL);
		ALTER TABLE public.events DROP payload_sha256`); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mapped := runspec.Table{Name: "events", Columns: map[string]string{"position": ""}}
	state := devstate.State{
		PID: os.Getpid(), DatabaseURL: databaseURL,
		Tables: map[string]runspec.Table{"dev/default/a": mapped, "dev/default/b": {}},
	}
	if err := devstate.Write(dir, state); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"--org", "acme", "--type", "A", "--payload", "1", "--data-dir", dir}
	_, err := run(t, "", "", arguments...)
	if err == nil || !strings.Contains(err.Error(), "dev/default/a, dev/default/b") {
		t.Fatalf("two tables: %v", err)
	}
	if _, err := run(t, "", "", append(arguments, "--relay", "dev/default/a")...); err != nil {
		t.Fatal(err)
	}
	var there, elsewhere int
	if err := conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM public.events),
		(SELECT count(*) FROM relayops.outbox_events)`).Scan(&there, &elsewhere); err != nil || there != 1 || elsewhere != 0 {
		t.Fatalf("found %d and %d, %v", there, elsewhere, err)
	}
}

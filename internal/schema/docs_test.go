package schema_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/schema"
	"github.com/relayops/relayops/internal/testenv"
)

var (
	fence = regexp.MustCompile("(?s)```([a-z]+)\n(.*?)\n```")
	// statement is SQL inside another language: up to the quote that ends its string.
	statement = regexp.MustCompile("(?s)(SELECT relayops\\.emit_event\\(|SELECT pg_notify\\().*?(?:`|\"\"\"|\"[,);])")
	// parameter is a named argument and a placeholder of any of the languages.
	parameter = regexp.MustCompile(`(\w+) => (CAST\()?(?:\$\d+|\$\{[^}]*(?:\([^)]*\))?\}|%s|\?|:\w+)`)
)

type snippet struct{ language, text string }

func snippets(t *testing.T, page string) (all []snippet) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range fence.FindAllStringSubmatch(string(text), -1) {
		all = append(all, snippet{match[1], match[2]})
	}
	return all
}

// arguments are what the snippets' variables stand for.
var arguments = map[string]string{
	"org_id": "'acme'", "event_type": "'OrderConfirmed'", "payload": `'{"number": "A-1"}'`, "aggregate_type": "'Order'",
	"aggregate_id": "'A-1'", "event_id": "'0198c5a0-7c1e-7bb2-8f3a-2f6c1f0d9a11'",
}

// The SQL of each language's snippet runs, and writes the event that it should.
func TestSnippetsOfTheProducersGuide(t *testing.T) {
	conn := connect(t, testenv.Database(t))
	exec(t, conn, "LISTEN "+outbox.Channel)
	emits, pings := map[string]int{}, map[string]int{}
	for _, one := range snippets(t, "producers.md") {
		if one.language == "sql" || one.language == "go" || one.language == "sh" {
			continue
		}
		for _, found := range statement.FindAllString(one.text, -1) {
			sql := strings.TrimRight(found, "`\",);")
			if strings.HasPrefix(sql, "SELECT pg_notify") {
				exec(t, conn, sql+")")
				if _, err := conn.WaitForNotification(t.Context()); err != nil {
					t.Fatal(err)
				}
				pings[one.language]++
				continue
			}
			sql = parameter.ReplaceAllStringFunc(sql+")", func(match string) string {
				parts := parameter.FindStringSubmatch(match)
				value, known := arguments[parts[1]]
				if !known {
					t.Fatalf("%s: the argument %s has no sample", one.language, parts[1])
				}
				return parts[1] + " => " + parts[2] + value
			})
			exec(t, conn, "TRUNCATE relayops.outbox_events")
			exec(t, conn, sql)
			if n := queryInt(t, conn, `SELECT count(*) FROM relayops.outbox_events WHERE org_id = 'acme' AND aggregate_id = 'A-1'
				AND event_type = 'OrderConfirmed' AND payload = '{"number": "A-1"}' AND aggregate_type = 'Order'`); n != 1 {
				t.Errorf("%s: wrote another event: %s", one.language, sql)
			}
			emits[one.language]++
		}
	}
	for language, want := range map[string]int{"js": 1, "ts": 1, "python": 2, "java": 2} {
		if emits[language] != want || pings[language] != want {
			t.Errorf("%s: found %d events and %d pings, want %d of each", language, emits[language], pings[language], want)
		}
	}
}

func TestSQLOfTheProducersGuide(t *testing.T) {
	databaseURL := testenv.Database(t)
	conn := connect(t, databaseURL)
	exec(t, conn, "LISTEN "+outbox.Channel)
	var grants []string
	for _, one := range snippets(t, "producers.md") {
		switch {
		case one.language != "sql":
		case strings.Contains(one.text, "GRANT "):
			grants = append(grants, one.text)
		default:
			exec(t, conn, one.text)
		}
	}
	if n := queryInt(t, conn, "SELECT count(*) FROM relayops.outbox_events"); n != 2 {
		t.Errorf("the snippets wrote %d events, want 2", n)
	}
	if _, err := conn.WaitForNotification(t.Context()); err != nil {
		t.Error(err)
	}
	if len(grants) != 3 {
		t.Fatalf("found %d snippets of grants, want 3", len(grants))
	}
	for i, works := range []string{
		"SELECT relayops.emit_event('acme', 'A', '{}')",
		"", // The Go package's are tested with it.
		"INSERT INTO relayops.outbox_events (org_id, event_type, payload) VALUES ('acme', 'A', '{}')",
	} {
		if works != "" {
			exec(t, asGranted(t, databaseURL, grants[i], "app"), works)
		}
	}
}

// asGranted is a session of a role that has what a page grants to another name.
func asGranted(t *testing.T, databaseURL, grants, name string) *pgx.Conn {
	t.Helper()
	conn, role := as(t, databaseURL)
	exec(t, connect(t, databaseURL), regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(grants, role))
	return conn
}

// The grants of the schema's page are enough for what each role does.
func TestGrantsOfTheSchemaPage(t *testing.T) {
	databaseURL := testenv.Database(t)
	of := func(name string) *pgx.Conn {
		for _, one := range snippets(t, "schema.md") {
			if one.language == "sql" && strings.Contains(one.text, "TO "+name) {
				return asGranted(t, databaseURL, one.text, name)
			}
		}
		t.Fatalf("the page grants nothing to %s", name)
		return nil
	}
	for name, uses := range map[string][]schema.Use{"relayops_relay": {schema.Relay}, "relayops_worker": {schema.Worker}} {
		conn := of(name)
		if err := schema.Check(t.Context(), conn); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := schema.CheckTable(t.Context(), conn, outbox.Table{}, uses...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for other := range map[schema.Use]bool{schema.Relay: true, schema.Worker: true} {
			if _, err := schema.CheckTable(t.Context(), conn, outbox.Table{}, other); (err == nil) != (other == uses[0]) {
				t.Errorf("%s may do what use %d does: %v", name, other, err)
			}
		}
	}
	reader := of("relayops_reader")
	exec(t, reader, "SELECT * FROM relayops.outbox_events, relayops.pipeline_executions")
	if _, err := reader.Exec(t.Context(), "DELETE FROM relayops.outbox_events"); sqlState(err) != "42501" {
		t.Errorf("a reader deletes: %v", err)
	}
}

// The mapping that the schema's page shows is one that CheckTable accepts, with the indexes that the page gives.
func TestMappingOfTheSchemaPage(t *testing.T) {
	conn := connect(t, testenv.EmptyDatabase(t))
	exec(t, conn, `CREATE TABLE public."OutboxEvent" ("id" uuid, "orgId" text, "eventType" text, "eventVersion" integer,
		"aggregateType" text, "aggregateId" text, "correlationId" text, "causationId" text, "payload" jsonb,
		"occurredAt" timestamp(3), "status" text, "availableAt" timestamp(3), "attempts" integer,
		"publishedAt" timestamp(3))`)
	var table outbox.Table
	for _, one := range snippets(t, "schema.md") {
		switch {
		case one.language == "sql" && strings.Contains(one.text, "INDEX"):
			for index := range strings.SplitSeq(one.text, ";\n") {
				exec(t, conn, index)
			}
		case one.language == "yaml":
			table = mapping(t, one.text)
		}
	}
	warnings, err := schema.CheckTable(t.Context(), conn, table)
	if err != nil || len(warnings) > 0 || table.Name != "OutboxEvent" {
		t.Fatalf("found %v, %v", warnings, err)
	}
}

// mapping reads the page's YAML, of which it needs two levels and no more.
func mapping(t *testing.T, text string) outbox.Table {
	t.Helper()
	table := outbox.Table{Columns: map[string]string{}}
	line := regexp.MustCompile(`^( {2}| {4})(\w+): "?([^"]*)"?$`)
	for text := range strings.SplitSeq(text, "\n") {
		parts := line.FindStringSubmatch(text)
		switch {
		case text == "table:" || text == "  columns:":
		case parts == nil:
			t.Fatalf("the mapping has the line %q", text)
		case parts[2] == "schema":
			table.Schema = parts[3]
		case parts[2] == "name":
			table.Name = parts[3]
		default:
			table.Columns[parts[2]] = parts[3]
		}
	}
	return table
}

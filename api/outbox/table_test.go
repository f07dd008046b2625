package outbox_test

import (
	"strings"
	"testing"

	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/testenv"
)

func TestStandardTable(t *testing.T) {
	var table outbox.Table
	if table.Mapped() || table.Identifier() != `"relayops"."outbox_events"` || table.String() != "relayops.outbox_events" {
		t.Errorf("found %s", table.Identifier())
	}
	if err := table.Validate(); err != nil {
		t.Error(err)
	}
}

// The list of columns and the migration are two texts of one thing.
func TestColumnsAreThoseOfTheMigration(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	var names string
	err := pool.QueryRow(t.Context(), `
		SELECT string_agg(attname || ' ' || format_type(atttypid, NULL), ',' ORDER BY attnum)
		FROM pg_attribute WHERE attrelid = 'relayops.outbox_events'::regclass AND attnum > 0`).Scan(&names)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, column := range outbox.Columns() {
		want = append(want, column.Name+" "+column.Types[0])
	}
	if names != strings.Join(want, ",") {
		t.Errorf("the migration has\n%s\noutbox.Columns has\n%s", names, strings.Join(want, ","))
	}
}

func TestMappedNames(t *testing.T) {
	table := outbox.Table{Name: "OutboxEvent", Columns: map[string]string{"event_id": `i"d`, "headers": ""}}
	if got := table.Identifier(); got != `"public"."OutboxEvent"` {
		t.Errorf("found %s", got)
	}
	for standard, want := range map[string]string{
		"event_id": `"i""d"`, "org_id": `"org_id"`, "headers": "", "payload_sha256": "",
	} {
		quoted, exists := table.Column(standard)
		if quoted != want || exists != (want != "") {
			t.Errorf("%s: found %s, %t", standard, quoted, exists)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a name that is no column was accepted")
		}
	}()
	table.Column("no_such_column")
}

func TestMappingFaultsAreAllNamed(t *testing.T) {
	long := strings.Repeat("x", 64)
	for name, c := range map[string]struct {
		table outbox.Table
		want  []string
	}{
		"a schema alone": {outbox.Table{Schema: "shop"}, []string{"table.name"}},
		"columns alone":  {outbox.Table{Columns: map[string]string{"event_id": "id"}}, []string{"table.name"}},
		"everything": {outbox.Table{Schema: "a\x00b", Name: long, Columns: map[string]string{
			"event_id": "", "org_id": "payload", "evnt_type": "type", "payload_sha256": "hash",
		}}, []string{
			"table.schema", "table.name", "columns.event_id", "columns.payload", "evnt_type", "columns.payload_sha256",
		}},
	} {
		err := c.table.Validate()
		if err == nil {
			t.Fatalf("%s: accepted", name)
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s is not in: %v", name, want, err)
			}
		}
		if lines := strings.Count(err.Error(), "\n") + 1; lines != len(c.want) {
			t.Errorf("%s: found %d faults, want %d: %v", name, lines, len(c.want), err)
		}
		if _, err := outbox.NewWriter(outbox.WithTable(c.table)); err == nil {
			t.Errorf("%s: NewWriter accepted it", name)
		}
	}
}

// No row can make a read fail: neither NULL nor infinity nor a text that is no UUID.
func TestReadNeverFails(t *testing.T) {
	pool := testenv.Pool(t, testenv.EmptyDatabase(t))
	if _, err := pool.Exec(t.Context(), `CREATE TABLE public.bad (event_id text, org_id uuid, event_type text,
		payload json, headers json, occurred_at timestamp, status text, available_at timestamptz, attempts smallint,
		stream_seq bigint, position integer, event_version smallint);
		INSERT INTO public.bad DEFAULT VALUES;
		INSERT INTO public.bad (event_id, payload, headers, occurred_at, status, available_at)
			VALUES ('no uuid', '"\u0000"', '[]', 'infinity', 'x', '-infinity');
		INSERT INTO public.bad (event_id, occurred_at, available_at)
			VALUES ('', '294276-12-31', '4713-01-01 BC')`); err != nil {
		t.Fatal(err)
	}
	table := outbox.Table{Name: "bad", Columns: map[string]string{
		"aggregate_type": "", "aggregate_id": "", "correlation_id": "", "causation_id": "", "created_at": "",
		"operation_version": "", "last_error": "", "published_at": "", "stream": "",
	}}
	for _, column := range outbox.Columns() {
		read := "SELECT count(coalesce((" + table.Read("b", column.Name) + ")::text, '')) FROM public.bad b"
		if n := count(t, pool, read); n != 3 {
			t.Errorf("%s: found %d", column.Name, n)
		}
	}
}

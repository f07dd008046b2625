package schema_test

import (
	osexec "os/exec"
	"path/filepath"
	"testing"

	"github.com/relayops/relayops/internal/localpostgres"
	"github.com/relayops/relayops/internal/schema"
	"github.com/relayops/relayops/internal/testenv"
)

// A dump leaves generated columns out; a restore computes them again, with the functions that it made before.
func TestDumpAndRestore(t *testing.T) {
	from, to := testenv.Database(t), testenv.EmptyDatabase(t)
	original := connect(t, from)
	exec(t, original, `SELECT relayops.emit_event('acme', 'A', '{"b": 1, "a": [1.50]}', headers => '{"a": "b"}')`)
	exec(t, original, `INSERT INTO relayops.outbox_events (org_id, event_type, payload) VALUES ('acme', 'A', 'null')`)
	bin, err := localpostgres.FindBinaries()
	if err != nil {
		t.Fatal(err)
	}
	dump := filepath.Join(t.TempDir(), "dump")
	for _, command := range [][]string{
		{filepath.Join(bin, "pg_dump"), "--format=custom", "--file", dump, from},
		{filepath.Join(bin, "pg_restore"), "--exit-on-error", "--no-owner", "--dbname", to, dump},
	} {
		cmd := osexec.CommandContext(t.Context(), command[0], command[1:]...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command[0], err, out)
		}
	}
	restored := connect(t, to)
	if err := schema.Check(t.Context(), restored); err != nil {
		t.Fatal(err)
	}
	const rows = `SELECT string_agg(o::text, ';' ORDER BY position) FROM relayops.outbox_events o`
	var before, after string
	if err := original.QueryRow(t.Context(), rows).Scan(&before); err != nil {
		t.Fatal(err)
	}
	if err := restored.QueryRow(t.Context(), rows).Scan(&after); err != nil {
		t.Fatal(err)
	}
	if before != after {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	exec(t, restored, "SELECT relayops.emit_event('acme', 'A', '1')")
}

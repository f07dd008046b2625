package schema_test

import (
	"testing"

	"github.com/relayops/relayops/internal/testenv"
)

// The grants of docs/producers.md: the function alone, or an INSERT of the columns that a producer sets.

func TestFunctionNeedsExecuteOnly(t *testing.T) {
	databaseURL := testenv.Database(t)
	app, _ := as(t, databaseURL, "GRANT USAGE ON SCHEMA relayops", "GRANT EXECUTE ON FUNCTION relayops.emit_event")
	exec(t, app, "SELECT relayops.emit_event('acme', 'A', '{}', event_id => '11111111-1111-4111-8111-111111111111')")
	exec(t, app, "SELECT relayops.emit_event('acme', 'A', '{}', event_id => '11111111-1111-4111-8111-111111111111')")
	for _, forbidden := range []string{
		"SELECT 1 FROM relayops.outbox_events",
		"INSERT INTO relayops.outbox_events (org_id, event_type, payload) VALUES ('acme', 'A', '{}')",
		"UPDATE relayops.outbox_events SET status = 'PUBLISHED'",
		"DELETE FROM relayops.outbox_events",
	} {
		if _, err := app.Exec(t.Context(), forbidden); sqlState(err) != "42501" {
			t.Errorf("%s: found %v, want insufficient_privilege", forbidden, err)
		}
	}
}

func TestFunctionIsNotForEverybody(t *testing.T) {
	app, _ := as(t, testenv.Database(t), "GRANT USAGE ON SCHEMA relayops")
	if _, err := app.Exec(t.Context(), "SELECT relayops.emit_event('acme', 'A', '{}')"); sqlState(err) != "42501" {
		t.Fatalf("found %v, want insufficient_privilege", err)
	}
}

func TestInsertNeedsItsColumnsOnly(t *testing.T) {
	app, _ := as(t, testenv.Database(t), "GRANT USAGE ON SCHEMA relayops",
		`GRANT INSERT (event_id, org_id, event_type, event_version, aggregate_type, aggregate_id, correlation_id,
			causation_id, payload, headers, occurred_at, available_at) ON relayops.outbox_events`)
	exec(t, app, `INSERT INTO relayops.outbox_events (org_id, event_type, payload, headers)
		VALUES ('acme', 'A', '{}', '{"a":"b"}')`)
	if _, err := app.Exec(t.Context(), `INSERT INTO relayops.outbox_events (org_id, event_type, payload, status)
		VALUES ('acme', 'A', '{}', 'PUBLISHED')`); sqlState(err) != "42501" {
		t.Fatalf("found %v, want insufficient_privilege", err)
	}
}

// A SECURITY DEFINER function that resolved names by the caller's search_path would run the caller's code as owner.
func TestFunctionIgnoresTheCallersSearchPath(t *testing.T) {
	databaseURL := testenv.Database(t)
	app, role := as(t, databaseURL, "GRANT USAGE ON SCHEMA relayops", "GRANT EXECUTE ON FUNCTION relayops.emit_event")
	exec(t, connect(t, databaseURL), "CREATE SCHEMA trap AUTHORIZATION "+role)
	exec(t, app, `CREATE TABLE trap.caught (who text);
		GRANT INSERT ON trap.caught TO PUBLIC; GRANT USAGE ON SCHEMA trap TO PUBLIC;
		CREATE FUNCTION trap.sha256(bytea) RETURNS bytea LANGUAGE sql AS $$
			INSERT INTO trap.caught VALUES (current_user); SELECT '\x00'::bytea $$;
		CREATE FUNCTION trap.now() RETURNS timestamptz LANGUAGE sql AS $$
			INSERT INTO trap.caught VALUES (current_user); SELECT '2020-01-01Z'::timestamptz $$;
		SET search_path TO trap, pg_catalog`)
	exec(t, app, "SELECT relayops.emit_event('acme', 'A', '{}')")
	if n := queryInt(t, app, "SELECT count(*) FROM trap.caught"); n != 0 {
		t.Fatalf("the caller's functions were run %d times", n)
	}
}

package schema_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/testenv"
)

func sqlState(err error) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refused.Code
	}
	return fmt.Sprint(err)
}

func TestEmitEventStoresEveryParameter(t *testing.T) {
	conn := connect(t, testenv.Database(t))
	exec(t, conn, `SELECT relayops.emit_event(
		org_id => 'a/b c.*>é', event_type => 'invoice.paid', payload => '{"b":1, "a":null}',
		aggregate_type => 'Invoice', aggregate_id => '7', event_id => '11111111-1111-4111-8111-111111111111',
		event_version => 2, correlation_id => 'c', causation_id => 'd', headers => '{"traceparent":"t"}',
		occurred_at => '2026-01-02 03:04:05+00', available_at => '2126-01-02 03:04:05+00', ordered => true)`)
	n := queryInt(t, conn, `SELECT count(*) FROM relayops.outbox_events WHERE org_id = 'a/b c.*>é'
		AND event_type = 'invoice.paid' AND payload::text = '{"a": null, "b": 1}' AND aggregate_type = 'Invoice'
		AND aggregate_id = '7' AND event_id = '11111111-1111-4111-8111-111111111111' AND event_version = 2
		AND correlation_id = 'c' AND causation_id = 'd' AND headers = '{"traceparent":"t"}'
		AND occurred_at = '2026-01-02 03:04:05+00' AND available_at = '2126-01-02 03:04:05+00'
		AND payload_sha256 = sha256('{"a": null, "b": 1}') AND status = 'PENDING' AND attempts = 0`)
	if n != 1 {
		t.Fatal("the row is not as it was given")
	}
}

func TestEmitEventTakesNullForNotGiven(t *testing.T) {
	conn := connect(t, testenv.Database(t))
	exec(t, conn, `SELECT relayops.emit_event('acme', 'A', 'null', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
		NULL)`)
	exec(t, conn, `SELECT relayops.emit_event('acme', 'A', 'null', aggregate_id => NULL, ordered => true)`)
	if n := queryInt(t, conn, `SELECT count(*) FROM relayops.outbox_events WHERE payload = 'null' AND headers = '{}'
		AND aggregate_id = '' AND event_version = 1 AND occurred_at <= now()`); n != 2 {
		t.Fatalf("found %d rows", n)
	}
}

func TestEmitEventRefuses(t *testing.T) {
	conn := connect(t, testenv.Database(t))
	large := `"` + strings.Repeat("x", event.MaxPayloadBytes-1) + `"`
	for name, c := range map[string]struct {
		call  string
		state string
		field string
	}{
		"no org":          {`NULL, 'A', '{}'`, "23502", "org_id"},
		"an empty org":    {`'', 'A', '{}'`, "23502", "org_id"},
		"a long org":      {`repeat('a', 129), 'A', '{}'`, "23514", "org_id"},
		"an org tab":      {`E'a\tb', 'A', '{}'`, "23514", "org_id"},
		"no type":         {`'acme', '', '{}'`, "23502", "event_type"},
		"a bad type":      {`'acme', 'a b', '{}'`, "23514", "event_type"},
		"a type line end": {`'acme', E'a\n', '{}'`, "23514", "event_type"},
		"a type with é":   {`'acme', 'é', '{}'`, "23514", "event_type"},
		"no payload":      {`'acme', 'A', NULL`, "23502", "payload"},
		"no JSON":         {`'acme', 'A', '{'`, "22P02", "json"},
		"version 0":       {`'acme', 'A', '{}', event_version => 0`, "23514", "event_version"},
		"nil id":          {`'acme', 'A', '{}', event_id => '00000000-0000-0000-0000-000000000000'`, "23514", "event_id"},
		"a long text":     {`'acme', 'A', '{}', correlation_id => repeat('é', 129)`, "23514", "texts"},
		"a text line end": {`'acme', 'A', '{}', aggregate_id => E'a\r'`, "23514", "texts"},
		"header array":    {`'acme', 'A', '{}', headers => '[]'`, "23514", "headers"},
		"header number":   {`'acme', 'A', '{}', headers => '{"a":1}'`, "23514", "headers"},
		"header name":     {`'acme', 'A', '{}', headers => '{"A":"1"}'`, "23514", "headers"},
		"header line end": {`'acme', 'A', '{}', headers => '{"a":"1\n2"}'`, "23514", "headers"},
		"large headers":   {`'acme', 'A', '{}', headers => jsonb_build_object('a', repeat('x', 16384))`, "23514", "headers"},
		"many headers": {`'acme', 'A', '{}', headers => (SELECT jsonb_object_agg('h' || n, '')
			FROM generate_series(1, 65) n)`, "23514", "headers"},
		"no finite time": {`'acme', 'A', '{}', occurred_at => 'infinity'`, "23514", "occurred_at"},
		"a year 10000":   {`'acme', 'A', '{}', occurred_at => '10000-01-01Z'`, "23514", "occurred_at"},
		"never due":      {`'acme', 'A', '{}', available_at => 'infinity'`, "23514", "available_at"},
	} {
		_, err := conn.Exec(t.Context(), "SELECT relayops.emit_event("+c.call+")")
		if sqlState(err) != c.state || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: found %v, want %s that names %s", name, err, c.state, c.field)
		}
	}
	_, err := conn.Exec(t.Context(), "SELECT relayops.emit_event('acme', 'A', $1::jsonb)", large)
	const want = "payload: found 8388609 bytes, allowed: at most 8388608"
	if sqlState(err) != "54000" || !strings.Contains(err.Error(), want) {
		t.Errorf("8 MiB + 1: found %v", err)
	}
	if n := queryInt(t, conn, "SELECT count(*) FROM relayops.outbox_events"); n != 0 {
		t.Errorf("found %d rows", n)
	}
}

// The limits hold for each way in: the function, and an INSERT that sets whatever it likes.
func TestPayloadLimitOfEachWayIn(t *testing.T) {
	conn := connect(t, testenv.Database(t))
	payload := func(size int) string { return `"` + strings.Repeat("x", size-2) + `"` }
	for name, statement := range map[string]string{
		"emit_event": "SELECT relayops.emit_event('acme', 'A', $1::jsonb)",
		"INSERT":     "INSERT INTO relayops.outbox_events (org_id, event_type, payload) VALUES ('acme', 'A', $1::jsonb)",
		"UPDATE":     "UPDATE relayops.outbox_events SET payload = $1::jsonb",
	} {
		if _, err := conn.Exec(t.Context(), statement, payload(event.MaxPayloadBytes)); err != nil {
			t.Errorf("%s, 8 MiB: %v", name, err)
		}
		for _, size := range []int{event.MaxPayloadBytes + 1, 10_000_000} {
			if name == "UPDATE" && queryInt(t, conn, "SELECT count(*) FROM relayops.outbox_events") == 0 {
				exec(t, conn, "SELECT relayops.emit_event('acme', 'A', '1')")
			}
			if _, err := conn.Exec(t.Context(), statement, payload(size)); sqlState(err) != "54000" {
				t.Errorf("%s, %d bytes: found %v", name, size, err)
			}
		}
	}
}

func TestEmitEventTwice(t *testing.T) {
	conn := connect(t, testenv.Database(t))
	const emit = "SELECT relayops.emit_event($1, 'A', $2::jsonb, event_id => $3)"
	id := uuid.NewString()
	exec(t, conn, emit, "acme", `{"a":1,"b":2}`, id)
	exec(t, conn, emit, "acme", `{"b": 2, "a": 1}`, id)
	exec(t, conn, emit, "globex", `{"other":true}`, id)
	_, err := conn.Exec(t.Context(), emit, "acme", `{"a":2}`, id)
	if sqlState(err) != "RO409" || !strings.Contains(err.Error(), id) {
		t.Fatalf("found %v, want RO409", err)
	}
	if n := queryInt(t, conn, "SELECT count(*) FROM relayops.outbox_events"); n != 2 {
		t.Fatalf("found %d rows, want one for each organisation", n)
	}
}

// Two transactions race for one key: the second waits, and then knows (guarantee 9).
func TestEmitEventRace(t *testing.T) {
	for name, c := range map[string]struct {
		isolation pgx.TxIsoLevel
		payload   string
		commit    bool
		want      string
	}{
		"the same payload, committed":     {pgx.ReadCommitted, "1", true, "<nil>"},
		"another payload, committed":      {pgx.ReadCommitted, "2", true, "RO409"},
		"another payload, rolled back":    {pgx.ReadCommitted, "2", false, "<nil>"},
		"repeatable read, committed":      {pgx.RepeatableRead, "1", true, "40001"},
		"serializable, another payload":   {pgx.Serializable, "2", true, "40001"},
		"repeatable read and rolled back": {pgx.RepeatableRead, "2", false, "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			databaseURL := testenv.Database(t)
			id := uuid.NewString()
			first, second := begin(t, databaseURL, pgx.ReadCommitted), begin(t, databaseURL, c.isolation)
			const emit = "SELECT relayops.emit_event('acme', 'A', $1::jsonb, event_id => $2)"
			if _, err := first.Exec(t.Context(), emit, "1", id); err != nil {
				t.Fatal(err)
			}
			queryInt(t, second, "SELECT 1") // The snapshot of a repeatable read.
			result := make(chan error, 1)
			go func() {
				_, err := second.Exec(context.Background(), emit, c.payload, id)
				result <- err
			}()
			awaitBlocked(t, databaseURL, second)
			end := first.Rollback
			if c.commit {
				end = first.Commit
			}
			if err := end(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-result; sqlState(err) != c.want {
				t.Fatalf("found %v, want %s", err, c.want)
			}
		})
	}
}

// ordered => true holds the second writer of an aggregate back until the first one has ended, and nobody else.
func TestEmitEventOrdered(t *testing.T) {
	databaseURL := testenv.Database(t)
	first, second, third := begin(t, databaseURL, ""), begin(t, databaseURL, ""), begin(t, databaseURL, "")
	emit := func(tx pgx.Tx, org, aggregate string) error {
		_, err := tx.Exec(context.Background(), `SELECT relayops.emit_event($1, 'A', '{}', aggregate_type => 'Order',
			aggregate_id => $2, ordered => true)`, org, aggregate)
		return err
	}
	if err := emit(first, "acme", "1"); err != nil {
		t.Fatal(err)
	}
	for _, other := range [][2]string{{"acme", "2"}, {"globex", "1"}} {
		if err := emit(third, other[0], other[1]); err != nil {
			t.Fatal(err)
		}
	}
	result := make(chan error, 1)
	go func() { result <- emit(second, "acme", "1") }()
	awaitBlocked(t, databaseURL, second)
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}

func begin(t testing.TB, databaseURL string, isolation pgx.TxIsoLevel) pgx.Tx {
	t.Helper()
	tx, err := connect(t, databaseURL).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: isolation})
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// awaitBlocked waits until a transaction's session waits for a lock.
func awaitBlocked(t testing.TB, databaseURL string, tx pgx.Tx) {
	t.Helper()
	watcher, pid := connect(t, databaseURL), tx.Conn().PgConn().PID()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if queryInt(t, watcher, "SELECT cardinality(pg_blocking_pids($1))", pid) > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the second transaction does not wait")
		}
	}
}

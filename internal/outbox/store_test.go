package outbox

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/api/event"
	table "github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/testenv"
)

func newStore(t *testing.T, mapping table.Table) *Store {
	t.Helper()
	s, err := New(mapping)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string, arguments ...any) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), sql, arguments...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func insert(t *testing.T, pool *pgxpool.Pool, org, payload string) uuid.UUID {
	t.Helper()
	id := uuid.New()
	exec(t, pool, `INSERT INTO relayops.outbox_events (event_id, org_id, event_type, payload, headers)
		VALUES ($1, $2, 'T', $3, '{"k": "v"}')`, id, org, payload)
	return id
}

func claim(t *testing.T, s *Store, pool *pgxpool.Pool, change ...func(*Request)) *Claim {
	t.Helper()
	request := Request{Limit: 10, MaxBytes: 1 << 20, InlineBytes: 1 << 16, Lease: 10 * time.Second}
	for _, apply := range change {
		apply(&request)
	}
	c, err := s.Claim(t.Context(), pool, request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Release(context.Background()) })
	return c
}

func published(c *Claim) Marks {
	marks := Marks{Stream: "S"}
	for i := range c.Rows {
		marks.Published = append(marks.Published, Published{Row: &c.Rows[i], Sequence: uint64(i + 1)})
	}
	return marks
}

func status(t *testing.T, pool *pgxpool.Pool, id uuid.UUID) (status string, attempts int) {
	t.Helper()
	err := pool.QueryRow(context.Background(), "SELECT status, attempts FROM relayops.outbox_events WHERE event_id = $1", id).
		Scan(&status, &attempts)
	if err != nil {
		t.Fatal(err)
	}
	return status, attempts
}

func TestClaimsAreApart(t *testing.T) {
	pool, s := testenv.Pool(t, testenv.Database(t)), newStore(t, table.Table{})
	for range 5 {
		insert(t, pool, "acme", "1")
	}
	first := claim(t, s, pool, func(r *Request) { r.Limit = 3 })
	second := claim(t, s, pool)
	if len(first.Rows) != 3 || !first.Full || len(second.Rows) != 2 || second.Full {
		t.Fatalf("claims: %d (full %t), %d (full %t)", len(first.Rows), first.Full, len(second.Rows), second.Full)
	}
	first.Release(t.Context())
	again := claim(t, s, pool)
	if len(again.Rows) != 3 {
		t.Errorf("%d rows after they were given back, want 3", len(again.Rows))
	}
}

func TestSettle(t *testing.T) {
	pool, s := testenv.Pool(t, testenv.Database(t)), newStore(t, table.Table{})
	var ids []uuid.UUID
	for range 4 {
		ids = append(ids, insert(t, pool, "acme", "1"))
	}
	c := claim(t, s, pool)
	err := c.Settle(t.Context(), Marks{
		Stream:    "S",
		Published: []Published{{Row: &c.Rows[0], Sequence: 42}},
		Failed: []Failed{
			{Row: &c.Rows[1], Code: CodeMessageTooLarge, RetryIn: time.Hour},
			{Row: &c.Rows[2], Code: CodeBadSubject, Final: true},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"PUBLISHED 0  S 42 t", "PENDING 1 message_too_large - 0 f", "FAILED 1 bad_subject - 0 t", "PENDING 0  - 0 t"} {
		var got string
		if err := pool.QueryRow(t.Context(), `SELECT concat_ws(' ', status, attempts, last_error, coalesce(stream, '-'),
			coalesce(stream_seq, 0), available_at < now() + interval '59 minutes') FROM relayops.outbox_events
			WHERE event_id = $1`, ids[i]).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("row %d: %q, want %q", i, got, want)
		}
	}
	backlog, err := s.Backlog(t.Context(), pool, true)
	if err != nil {
		t.Fatal(err)
	}
	if backlog.Due != 1 || backlog.Waiting != 1 || backlog.Failed != 1 {
		t.Errorf("backlog: %+v", backlog)
	}
}

// The server ends a claim when its lease is over; a late mark changes nothing.
func TestLeaseIsEnforcedByTheServer(t *testing.T) {
	pool, s := testenv.Pool(t, testenv.Database(t)), newStore(t, table.Table{})
	id := insert(t, pool, "acme", "1")
	lost := claim(t, s, pool, func(r *Request) { r.Lease = 200 * time.Millisecond })
	if c := claim(t, s, pool); len(c.Rows) != 0 {
		t.Fatal("the row is claimed twice")
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		c := claim(t, s, pool)
		if len(c.Rows) == 1 {
			c.Release(t.Context())
			break
		}
		c.Release(t.Context())
		if time.Now().After(deadline) {
			t.Fatal("the lease did not end")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := lost.Settle(t.Context(), published(lost)); err == nil {
		t.Error("a lost claim was settled")
	}
	if got, attempts := status(t, pool, id); got != "PENDING" || attempts != 0 {
		t.Errorf("row: %s, %d attempts", got, attempts)
	}
}

// A mark finds only the rows of its claim, even if their places belong to others by now.
func TestMarkChecksTheRow(t *testing.T) {
	pool, s := testenv.Pool(t, testenv.Database(t)), newStore(t, table.Table{})
	insert(t, pool, "acme", "1")
	c := claim(t, s, pool)
	c.Rows[0].org = "globex"
	if err := c.Settle(t.Context(), published(c)); !errors.Is(err, ErrClaimLost) {
		t.Errorf("settled with another org: %v", err)
	}
}

func TestClaimIsBoundedInBytes(t *testing.T) {
	pool, s := testenv.Pool(t, testenv.Database(t)), newStore(t, table.Table{})
	for range 5 {
		insert(t, pool, "acme", `"`+strings.Repeat("x", 998)+`"`)
	}
	c := claim(t, s, pool, func(r *Request) { r.MaxBytes = 2500 })
	if len(c.Rows) != 2 || !c.Full {
		t.Errorf("%d rows of 1000 bytes in 2500 (full %t), want 2", len(c.Rows), c.Full)
	}
	c.Release(t.Context())
	if c := claim(t, s, pool, func(r *Request) { r.MaxBytes = 10 }); len(c.Rows) != 1 {
		t.Errorf("%d rows, want 1: one is read whatever its size", len(c.Rows))
	}
}

func TestLargePayloadIsNotRead(t *testing.T) {
	pool, s := testenv.Pool(t, testenv.Database(t)), newStore(t, table.Table{})
	large := `"` + strings.Repeat("x", 100_000) + `"`
	id := insert(t, pool, "acme", large)
	c := claim(t, s, pool)
	row := c.Rows[0]
	if row.PayloadRef != event.PayloadRefOutbox || row.Payload != nil || row.Fault != nil {
		t.Errorf("row: ref %q, %d bytes, fault %v", row.PayloadRef, len(row.Payload), row.Fault)
	}
	if row.PayloadSHA256 != event.PayloadHash([]byte(large)) {
		t.Error("the hash is not the payload's")
	}
	got, err := s.Get(t.Context(), pool, "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Payload) != large || got.PayloadSHA256 != row.PayloadSHA256 || got.Headers["k"] != "v" || got.Position != 1 {
		t.Errorf("Get: %d bytes, %+v", len(got.Payload), got.Headers)
	}
}

// Guarantee 8.
func TestGetIsOfOneOrg(t *testing.T) {
	pool, s := testenv.Pool(t, testenv.Database(t)), newStore(t, table.Table{})
	id := insert(t, pool, "acme", "1")
	if _, err := s.Get(t.Context(), pool, "acme", id); err != nil {
		t.Fatal(err)
	}
	for org, id := range map[string]uuid.UUID{"globex": id, "": id, "acme": uuid.New()} {
		if _, err := s.Get(t.Context(), pool, org, id); !errors.Is(err, ErrNotFound) {
			t.Errorf("org %q, id %s: %v, want ErrNotFound", org, id, err)
		}
	}
}

func TestGetOfAMappedTable(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	exec(t, pool, `CREATE TABLE public."Events" ("Id" uuid PRIMARY KEY, "Tenant" uuid NOT NULL, "Type" varchar(50) NOT NULL,
		"Data" jsonb, "At" timestamp NOT NULL DEFAULT now(), "State" varchar(20) NOT NULL DEFAULT 'PENDING',
		"Due" timestamptz NOT NULL DEFAULT now(), "Tries" smallint NOT NULL DEFAULT 0)`)
	columns := map[string]string{
		"event_id": "Id", "org_id": "Tenant", "event_type": "Type", "payload": "Data", "occurred_at": "At",
		"status": "State", "available_at": "Due", "attempts": "Tries",
	}
	for _, column := range table.Columns() {
		if !column.Required {
			columns[column.Name] = ""
		}
	}
	s := newStore(t, table.Table{Name: "Events", Columns: columns})
	id, org := uuid.New(), uuid.New()
	exec(t, pool, `INSERT INTO public."Events" ("Id", "Tenant", "Type", "Data") VALUES ($1, $2, 'T', '{"a": 1}')`, id, org)
	got, err := s.Get(t.Context(), pool, org.String(), id)
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Payload) != `{"a": 1}` || got.OrgID != org.String() || got.EventVersion != 1 || got.OperationVersion != 1 {
		t.Errorf("Get: %+v", got)
	}
	if _, err := s.Get(t.Context(), pool, "not a uuid", id); !errors.Is(err, ErrNotFound) {
		t.Errorf("an org that no UUID column holds: %v, want ErrNotFound", err)
	}
	c := claim(t, s, pool)
	if err := c.Settle(t.Context(), published(c)); err != nil || len(c.Rows) != 1 {
		t.Errorf("settle %d rows: %v", len(c.Rows), err)
	}
	exec(t, pool, `INSERT INTO public."Events" ("Id", "Tenant", "Type") VALUES ($1, $2, 'T')`, uuid.New(), org)
	c = claim(t, s, pool)
	if len(c.Rows) != 1 || !errors.Is(c.Rows[0].Fault, event.ErrInvalid) {
		t.Fatalf("a row without payload: %+v", c.Rows)
	}
	if err := c.Settle(t.Context(), Marks{Failed: []Failed{{Row: &c.Rows[0], Code: CodeInvalidEvent, Final: true}}}); err != nil {
		t.Error(err)
	}
}

func TestBacklogAge(t *testing.T) {
	pool, s := testenv.Pool(t, testenv.Database(t)), newStore(t, table.Table{})
	if b, err := s.Backlog(t.Context(), pool, false); err != nil || b != (Backlog{}) {
		t.Errorf("empty outbox: %+v, %v", b, err)
	}
	insert(t, pool, "acme", "1")
	exec(t, pool, "UPDATE relayops.outbox_events SET available_at = now() - interval '90 seconds'")
	b, err := s.Backlog(t.Context(), pool, false)
	if err != nil || b.OldestDue < 90*time.Second || b.OldestDue > 2*time.Minute {
		t.Errorf("oldest due for %s, %v", b.OldestDue, err)
	}
}

// The claim's plan: the partial index on due rows in order, and no sort, whatever lies in the table.
func TestClaimUsesTheIndex(t *testing.T) {
	pool, s := testenv.Pool(t, testenv.Database(t)), newStore(t, table.Table{})
	exec(t, pool, `INSERT INTO relayops.outbox_events (org_id, event_type, payload, status, available_at)
		SELECT 'acme', 'T', '1', CASE WHEN n % 100 = 0 THEN 'PENDING' ELSE 'PUBLISHED' END, now() + (n % 200) * interval '1 hour'
		FROM generate_series(1, 20000) AS n`)
	exec(t, pool, "ANALYZE relayops.outbox_events")
	rows, err := pool.Query(t.Context(), "EXPLAIN "+strings.NewReplacer("$1", "50", "$2", "1000").Replace(s.sql.claim))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	if text := plan.String(); !strings.Contains(text, "outbox_events_due") || strings.Contains(text, "Sort") {
		t.Errorf("plan:\n%s", text)
	}
}

package outbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/testenv"
)

// No phantom (guarantee 2), and nothing without the business data: the event shares the fate of the transaction.
func TestEventSharesTheFateOfItsTransaction(t *testing.T) {
	forEachKind(t, func(t *testing.T, pool *pgxpool.Pool, begin func() session) {
		if _, err := pool.Exec(t.Context(), "CREATE TABLE orders (number text PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		w := writer(t)
		for n, commit := range []bool{false, true} {
			for _, events := range [][]event.Envelope{
				{confirmed(t, "acme", `1`)},
				{confirmed(t, "acme", `1`), confirmed(t, "acme", `2`)},
			} {
				tx := begin()
				order := fmt.Sprintf("%d-%d", n, len(events))
				if err := tx.exec("INSERT INTO orders VALUES ('" + order + "')"); err != nil {
					t.Fatal(err)
				}
				if err := tx.write(w, events...); err != nil {
					t.Fatal(err)
				}
				end, want := tx.rollback, 0
				if commit {
					end, want = tx.commit, len(events)
				}
				if err := end(); err != nil {
					t.Fatal(err)
				}
				found := 0
				for _, one := range events {
					if _, is := stored(t, pool, outbox.Table{}, one.ID, one.OrgID); is {
						found++
					}
				}
				orders := count(t, pool, "SELECT count(*) FROM orders WHERE number = $1", order)
				if found != want || (orders == 1) != commit {
					t.Fatalf("commit %t: found %d events, want %d, and %d orders", commit, found, want, orders)
				}
			}
		}
	})
}

func TestEventIsStoredAsItIs(t *testing.T) {
	full := event.Envelope{
		ID: uuid.MustParse("11111111-2222-4333-8444-555555555555"), OrgID: `north/east 1.*> é "quoted" \back {a,b}`,
		EventType: "invoice.paid", EventVersion: 3, AggregateType: "Order's", AggregateID: "NULL",
		CorrelationID: "漢字 🧾", CausationID: `{"a":1}`,
		Payload:    json.RawMessage(`{"a": [1, null, "x\"y\\z"], "é": {"n": 12.50}}`),
		OccurredAt: time.Date(2026, 2, 3, 4, 5, 6, 789012000, time.UTC),
		Headers:    map[string]string{"traceparent": "00-a-b-01", "note": `a "b" \ é`},
	}
	first := full
	first.ID, first.OccurredAt = uuid.New(), time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC)
	last := full
	last.ID, last.OccurredAt = uuid.New(), time.Date(9999, 12, 31, 23, 59, 59, 999000000, time.UTC)
	null := confirmed(t, "acme", `null`)
	null.OccurredAt = full.OccurredAt
	forEachKind(t, func(t *testing.T, pool *pgxpool.Pool, begin func() session) {
		for name, table := range map[string]outbox.Table{"standard": {}, "mapped": prismaTable(t, pool)} {
			if table.Mapped() {
				full.ID = uuid.New()
			}
			for _, events := range [][]event.Envelope{{full}, {null}, {first, last}} {
				tx := begin()
				if err := tx.exec("SET LOCAL TimeZone TO 'Asia/Tokyo'"); err != nil {
					t.Fatal(err)
				}
				if err := tx.write(writer(t, outbox.WithTable(table)), events...); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if err := tx.commit(); err != nil {
					t.Fatal(err)
				}
				for _, want := range events {
					got, found := stored(t, pool, table, want.ID, want.OrgID)
					if table.Mapped() { // Its columns keep milliseconds.
						want.OccurredAt = want.OccurredAt.Round(time.Millisecond)
					}
					if !found || !same(got, want) {
						t.Errorf("%s: found %t %+v, want %+v", name, found, got, want)
					}
				}
			}
			null.ID, first.ID, last.ID = uuid.New(), uuid.New(), uuid.New()
		}
	})
}

func same(a, b event.Envelope) bool {
	return a.ID == b.ID && a.OrgID == b.OrgID && a.EventType == b.EventType && a.EventVersion == b.EventVersion &&
		a.AggregateType == b.AggregateType && a.AggregateID == b.AggregateID && a.CorrelationID == b.CorrelationID &&
		a.CausationID == b.CausationID && string(a.Payload) == string(b.Payload) && a.OccurredAt.Equal(b.OccurredAt) &&
		maps.Equal(a.Headers, b.Headers)
}

func TestWrittenRowIsPendingAndDue(t *testing.T) {
	forEachKind(t, func(t *testing.T, pool *pgxpool.Pool, begin func() session) {
		mapped := prismaTable(t, pool)
		for _, table := range []outbox.Table{{}, mapped} {
			tx := begin()
			if err := tx.exec("SET LOCAL TimeZone TO 'America/New_York'"); err != nil {
				t.Fatal(err)
			}
			if err := tx.write(writer(t, outbox.WithTable(table)), confirmed(t, "acme", `1`)); err != nil {
				t.Fatal(err)
			}
			if err := tx.commit(); err != nil {
				t.Fatal(err)
			}
			status, _ := table.Column("status")
			attempts, _ := table.Column("attempts")
			due := count(t, pool, "SELECT count(*) FROM "+table.Identifier()+" WHERE "+status+" = 'PENDING' AND "+
				attempts+" = 0 AND "+table.Read("", "available_at")+" BETWEEN extract(epoch FROM now()) * 1000000 - 60000000 "+
				"AND extract(epoch FROM now()) * 1000000")
			if due != 1 {
				t.Errorf("%s: found %d rows that are due, want 1", table, due)
			}
		}
	})
}

// Idempotent: the same event again is no error; another payload under its key is (guarantee 9).
func TestSameEventAgain(t *testing.T) {
	forEachKind(t, func(t *testing.T, pool *pgxpool.Pool, begin func() session) {
		for _, table := range []outbox.Table{{}, prismaTable(t, pool)} {
			w := writer(t, outbox.WithTable(table))
			first := confirmed(t, "acme", `{"total":1,"x":[1,2]}`)
			commitEvents(t, pool, w, first)

			reordered, other := first, first
			reordered.Payload = json.RawMessage(`{ "x" : [1, 2], "total" : 1 }`)
			other.Payload = json.RawMessage(`{"total":2}`)
			fresh := confirmed(t, "acme", `3`)
			for name, c := range map[string]struct {
				events   []event.Envelope
				conflict bool
			}{
				"alone":                       {[]event.Envelope{first}, false},
				"in another form":             {[]event.Envelope{reordered}, false},
				"with others":                 {[]event.Envelope{confirmed(t, "acme", `1`), first, fresh}, false},
				"another payload":             {[]event.Envelope{other}, true},
				"another payload with others": {[]event.Envelope{confirmed(t, "acme", `4`), other}, true},
				"twice in a batch":            {[]event.Envelope{fresh, fresh}, false},
				"both payloads in a batch":    {twoPayloads(t), true},
			} {
				tx := begin()
				err := tx.write(w, c.events...)
				if errors.Is(err, outbox.ErrPayloadConflict) != c.conflict || (err != nil) != c.conflict {
					t.Fatalf("%s, %s: found %v, want a conflict: %t", table, name, err, c.conflict)
				}
				if c.conflict {
					var conflict *outbox.ConflictError
					key := c.events[len(c.events)-1]
					if !errors.As(err, &conflict) || conflict.EventID != key.ID || conflict.OrgID != key.OrgID {
						t.Errorf("%s: the conflict is %+v", name, conflict)
					}
				}
				// A conflict leaves the transaction usable.
				if err := tx.exec("SELECT 1"); err != nil {
					t.Errorf("%s: the transaction is unusable: %v", name, err)
				}
				if err := tx.commit(); err != nil {
					t.Fatal(err)
				}
			}
			got, _ := stored(t, pool, table, first.ID, first.OrgID)
			if want := `{"x": [1, 2], "total": 1}`; string(got.Payload) != want {
				t.Errorf("%s: the first payload became %s, want %s", table, got.Payload, want)
			}
		}
	})
}

func twoPayloads(t *testing.T) []event.Envelope {
	t.Helper()
	one := confirmed(t, "acme", `1`)
	two := one
	two.Payload = json.RawMessage(`2`)
	return []event.Envelope{one, confirmed(t, "acme", `0`), two}
}

func TestSameIDInTwoOrgs(t *testing.T) {
	forEachKind(t, func(t *testing.T, pool *pgxpool.Pool, begin func() session) {
		one, other := confirmed(t, "acme", `1`), confirmed(t, "globex", `2`)
		other.ID = one.ID
		for _, events := range [][]event.Envelope{{one}, {other}, {one, other}} {
			tx := begin()
			if err := tx.write(writer(t), events...); err != nil {
				t.Fatal(err)
			}
			if err := tx.commit(); err != nil {
				t.Fatal(err)
			}
		}
		if n := count(t, pool, "SELECT count(*) FROM relayops.outbox_events"); n != 2 {
			t.Fatalf("found %d rows, want 2", n)
		}
	})
}

func TestEveryInvalidEventIsNamedAndNothingIsSent(t *testing.T) {
	forEachKind(t, func(t *testing.T, pool *pgxpool.Pool, begin func() session) {
		noOrg, badPayload := confirmed(t, "acme", `1`), confirmed(t, "acme", `1`)
		noOrg.OrgID, noOrg.EventType = "", "a b"
		badPayload.Payload = json.RawMessage(`{`)
		tx := begin()
		err := tx.write(writer(t), confirmed(t, "acme", `1`), noOrg, badPayload)
		var invalid *event.ValidationError
		if !errors.As(err, &invalid) || invalid.EventID != noOrg.ID || !invalid.Has("orgId") || !invalid.Has("eventType") {
			t.Fatalf("found %v", err)
		}
		for _, part := range []string{"events[1]", "events[2]", badPayload.ID.String(), "payload"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in: %v", part, err)
			}
		}
		if err := tx.commit(); err != nil {
			t.Fatal(err)
		}
		if n := count(t, pool, "SELECT count(*) FROM relayops.outbox_events"); n != 0 {
			t.Fatalf("found %d rows, want none", n)
		}
		many := make([]event.Envelope, 5000)
		if err := begin().write(writer(t), many...); err == nil || len(err.Error()) > 10_000 {
			t.Fatalf("5000 faulty events: an error of %d bytes", len(fmt.Sprint(err)))
		}
	})
}

func TestPayloadLimit(t *testing.T) {
	forBothInterfaces(t, func(t *testing.T, _ *pgxpool.Pool, begin func() session) {
		tx := begin()
		largest := confirmed(t, "acme", `"`+strings.Repeat("x", event.MaxPayloadBytes-2)+`"`)
		if err := tx.write(writer(t), largest); err != nil {
			t.Fatalf("8 MiB: %v", err)
		}
		for name, payload := range map[string]string{
			"one byte more":        `"` + strings.Repeat("x", event.MaxPayloadBytes-1) + `"`,
			"10 MB":                `"` + strings.Repeat("x", 10_000_000) + `"`,
			"one that grows":       "[1" + strings.Repeat(",1", event.MaxPayloadBytes/3) + "]",
			"a number that grows":  "[1" + strings.Repeat(",1e131071", 64) + "]",
			"a NUL":                `"\u0000"`,
			"half of a pair":       `"\ud800"`,
			"a number beyond":      `1e200000`,
			"nested 1001 deep":     strings.Repeat("[", 1001) + strings.Repeat("]", 1001),
			"nested 100,000 deep":  strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
			"not JSON":             `{"a":1`,
			"nothing":              ``,
			"a JavaScript literal": `undefined`,
		} {
			err := tx.write(writer(t), confirmed(t, "acme", payload))
			var invalid *event.ValidationError
			if !errors.As(err, &invalid) || !invalid.Has("payload") || len(invalid.Faults) != 1 {
				t.Errorf("%s: found %v", name, err)
			}
		}
		// None of them reached the database: the transaction is still good.
		if err := tx.commit(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestBatchOf10000(t *testing.T) {
	forBothInterfaces(t, func(t *testing.T, pool *pgxpool.Pool, begin func() session) {
		events := make([]event.Envelope, 10_000)
		for i := range events {
			events[i] = confirmed(t, "acme", fmt.Sprintf(`{"n":%d,"text":%q}`, i, strings.Repeat("x", 200)))
		}
		tx := begin()
		if err := tx.write(writer(t), events...); err != nil {
			t.Fatal(err)
		}
		if err := tx.commit(); err != nil {
			t.Fatal(err)
		}
		outOfOrder := count(t, pool, `SELECT count(*) FROM (SELECT (payload->>'n')::integer AS n,
			row_number() OVER (ORDER BY position) - 1 AS place FROM relayops.outbox_events) AS o WHERE n <> place`)
		if outOfOrder != 0 {
			t.Errorf("%d events are not numbered in the order they were given", outOfOrder)
		}
		if n := count(t, pool, "SELECT count(DISTINCT xmin::text) FROM relayops.outbox_events"); n != 1 {
			t.Errorf("found %d transactions, want 1", n)
		}
		if n := count(t, pool, "SELECT count(*) FROM relayops.outbox_events"); n != len(events) {
			t.Fatalf("found %d rows", n)
		}
	})
}

// More payload than one statement takes is cut into several, which still share the transaction.
func TestLargeBatchIsCut(t *testing.T) {
	databaseURL := testenv.Database(t)
	pool := testenv.Pool(t, databaseURL)
	payload := `"` + strings.Repeat("x", 7<<20) + `"`
	events := make([]event.Envelope, 5)
	for i := range events {
		events[i] = confirmed(t, "acme", payload)
	}
	events = append(events, events[0])
	commitEvents(t, pool, writer(t), events...)
	if n := count(t, pool, "SELECT count(*) FROM relayops.outbox_events"); n != 5 {
		t.Fatalf("found %d rows, want 5", n)
	}
}

package outbox_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/testenv"
)

// prismaTable makes an outbox as Prisma would: camelCase, an enum, text ids, timestamps without time zone.
func prismaTable(t *testing.T, pool *pgxpool.Pool) outbox.Table {
	t.Helper()
	if _, err := pool.Exec(t.Context(), `
		CREATE TYPE public."OutboxStatus" AS ENUM ('PENDING', 'PUBLISHED', 'FAILED');
		CREATE TABLE public."OutboxEvent" (
			"id"            text           NOT NULL,
			"orgId"         text           NOT NULL,
			"eventType"     text           NOT NULL,
			"eventVersion"  integer        NOT NULL DEFAULT 1,
			"aggregateType" text,
			"aggregateId"   text,
			"correlationId" text,
			"causationId"   text,
			"payload"       jsonb          NOT NULL,
			"headers"       json           NOT NULL DEFAULT '{}',
			"occurredAt"    timestamp(3)   NOT NULL,
			"createdAt"     timestamp(3)   NOT NULL,
			"status"        public."OutboxStatus" NOT NULL DEFAULT 'PENDING',
			"availableAt"   timestamp(3)   NOT NULL DEFAULT CURRENT_TIMESTAMP,
			"attempts"      integer        NOT NULL,
			"publishedAt"   timestamp(3),
			CONSTRAINT "OutboxEvent_pkey" PRIMARY KEY ("id", "orgId")
		)`); err != nil {
		t.Fatal(err)
	}
	return outbox.Table{Name: "OutboxEvent", Columns: map[string]string{
		"position": "", "event_id": "id", "org_id": "orgId", "event_type": "eventType", "event_version": "eventVersion",
		"aggregate_type": "aggregateType", "aggregate_id": "aggregateId", "correlation_id": "correlationId",
		"causation_id": "causationId", "payload_sha256": "", "occurred_at": "occurredAt", "created_at": "createdAt",
		"available_at": "availableAt", "operation_version": "", "last_error": "", "published_at": "publishedAt",
		"stream": "", "stream_seq": "",
	}}
}

// The other types that a mapped table may have, and names that only quotes make harmless.
func TestMappedTableOfOtherTypes(t *testing.T) {
	const hostile = `x"; DROP TABLE relayops.outbox_events; --`
	org := "0b4f8a52-6b0f-4c36-9f0c-3f1f7f6f9d11"
	table := outbox.Table{Schema: `odd "schema"`, Name: hostile, Columns: map[string]string{
		"position": "", "event_id": "select", "org_id": `o'r"g\id`, "event_type": "type", "event_version": "",
		"aggregate_type": "", "aggregate_id": "aggregate id", "correlation_id": "corr", "causation_id": "",
		"payload": "body", "headers": "", "occurred_at": "createdAt", "created_at": "", "status": "état",
		"available_at": "from", "attempts": "tries", "operation_version": "", "last_error": "", "published_at": "",
		"stream": "", "stream_seq": "",
	}}
	quoted := func(name string) string { return pgx.Identifier{name}.Sanitize() }
	forEachKind(t, func(t *testing.T, pool *pgxpool.Pool, begin func() session) {
		if _, err := pool.Exec(t.Context(), `CREATE SCHEMA "odd ""schema"""; CREATE TABLE `+table.Identifier()+` (
			"select" uuid, `+quoted(`o'r"g\id`)+` uuid, "type" varchar(40), "aggregate id" uuid, "corr" uuid, "body" json,
			"createdAt" timestamptz, "état" varchar(10), "from" timestamptz, "tries" smallint,
			PRIMARY KEY (`+quoted(`o'r"g\id`)+`, "select"))`); err != nil {
			t.Fatal(err)
		}
		w := writer(t, outbox.WithTable(table))
		first, second := confirmed(t, org, `{"b": 1,   "a": [1.50]}`), confirmed(t, org, `null`)
		first.AggregateID, first.CorrelationID = org, org
		tx := begin()
		if err := tx.write(w, first, second); err != nil {
			t.Fatal(err)
		}
		if err := tx.write(w, first); err != nil {
			t.Fatalf("again: %v", err)
		}
		other := second
		other.Payload = json.RawMessage(`0`)
		if err := tx.write(w, other); !errors.Is(err, outbox.ErrPayloadConflict) {
			t.Fatalf("another payload: %v", err)
		}
		if err := tx.commit(); err != nil {
			t.Fatal(err)
		}
		for _, want := range []event.Envelope{first, second} {
			if want.ID == first.ID {
				want.Payload = json.RawMessage(`{"a": [1.50], "b": 1}`)
			}
			want.OccurredAt = want.OccurredAt.Truncate(time.Microsecond)
			if got, found := stored(t, pool, table, want.ID, org); !found || !same(got, want) {
				t.Errorf("found %t %+v, want %+v", found, got, want)
			}
		}
		if n := count(t, pool, "SELECT count(*) FROM relayops.outbox_events"); n != 0 {
			t.Errorf("found %d rows in the other table", n)
		}
	})
}

// A text that an event does not have: empty where the column cannot be NULL, NULL elsewhere.
func TestAbsentTextsOfAMappedTable(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	table := prismaTable(t, pool)
	if _, err := pool.Exec(t.Context(), `CREATE DOMAIN public.short AS varchar(10);
		ALTER TABLE public."OutboxEvent" ALTER "aggregateType" SET NOT NULL, ALTER "aggregateId" TYPE public.short,
			ALTER "aggregateId" SET NOT NULL, ALTER "causationId" TYPE uuid USING NULL`); err != nil {
		t.Fatal(err)
	}
	commitEvents(t, pool, writer(t, outbox.WithTable(table)), confirmed(t, "acme", `1`))
	n := count(t, pool, `SELECT count(*) FROM public."OutboxEvent" WHERE "aggregateType" = '' AND "aggregateId" = ''
		AND "correlationId" IS NULL AND "causationId" IS NULL`)
	if n != 1 {
		t.Fatal("the row is another")
	}
	table = outbox.Table{Schema: "relayops", Name: "outbox_events"} // Mapped to what the migrations made.
	commitEvents(t, pool, writer(t, outbox.WithTable(table)), confirmed(t, "acme", `1`))
}

func TestFieldWithoutAColumnIsNamed(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	table := prismaTable(t, pool)
	table.Columns["headers"], table.Columns["causation_id"] = "", ""
	w := writer(t, outbox.WithTable(table))
	e := confirmed(t, "acme", `1`)
	e.Headers, e.CausationID = map[string]string{"a": "b"}, "c"
	tx := beginTx(t, pool, "")
	var invalid *event.ValidationError
	err := w.Write(t.Context(), tx, e)
	if !errors.As(err, &invalid) || !invalid.Has("headers") || !invalid.Has("causationId") {
		t.Fatalf("found %v", err)
	}
	// The context's trace is no field of the caller's: it is left behind without a word.
	plain := confirmed(t, "acme", `1`)
	if err := w.Write(traced(t), tx, plain); err != nil {
		t.Fatal(err)
	}
}

// Another unique key of the table must not swallow an event.
func TestOtherUniqueKeyIsAnError(t *testing.T) {
	forEachKind(t, func(t *testing.T, pool *pgxpool.Pool, begin func() session) {
		table := prismaTable(t, pool)
		if _, err := pool.Exec(t.Context(), `CREATE UNIQUE INDEX only_id ON public."OutboxEvent" ("id")`); err != nil {
			t.Fatal(err)
		}
		w := writer(t, outbox.WithTable(table))
		one := confirmed(t, "acme", `1`)
		commitEvents(t, pool, w, one)
		other := one
		other.OrgID = "globex"
		tx := begin()
		err := tx.write(w, other)
		var coded interface{ SQLState() string }
		if !errors.As(err, &coded) || coded.SQLState() != "23505" || !strings.Contains(err.Error(), "only_id") {
			t.Fatalf("found %v, want the unique violation", err)
		}
	})
}

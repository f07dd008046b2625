package relay

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/runspec"
)

// An event's own fault counts against it, backs off, and ends as FAILED; the others go on.
func TestEventSpecificFailureCounts(t *testing.T) {
	w := newWorld(t)
	w.spec.Stream.MaxMessageBytes = 4 << 10
	tooLarge := w.insert("acme", "Big", `"`+strings.Repeat("x", 8<<10)+`"`)
	r := w.run()
	eventually(t, "the first failure is recorded", func() bool { return w.row("acme", tooLarge).Attempts >= 1 })
	w.insertMany(10)
	w.waitPublished(10)
	eventually(t, "the event is FAILED", func() bool { return w.row("acme", tooLarge).Status == outbox.StatusFailed })
	if got := w.row("acme", tooLarge); got.Attempts != 3 || got.Error != "message_too_large" {
		t.Errorf("row: %+v", got)
	}
	if got := testutil.ToFloat64(r.metrics.failures.WithLabelValues("message_too_large")); got != 3 {
		t.Errorf("metric publish_failures_total: %v, want 3", got)
	}
	if ready, reason := r.Ready(); !ready {
		t.Errorf("not ready: %s", reason)
	}
	if got := r.Status().Failures; got != 3 {
		t.Errorf("status: %d failures, want 3", got)
	}
}

func TestFailureBacksOff(t *testing.T) {
	w := newWorld(t, "max_payload: 4KB")
	id := w.insert("acme", "Big", `"`+strings.Repeat("x", 8<<10)+`"`)
	w.run(func(spec *runspec.Relay) {
		spec.BackOff = runspec.BackOff{Initial: runspec.Duration(time.Minute), Max: runspec.Duration(time.Hour), Multiplier: 2, Jitter: 0.5}
	})
	eventually(t, "the failure is recorded", func() bool { return w.row("acme", id).Attempts == 1 })
	got := w.row("acme", id)
	if got.Status != outbox.StatusPending || got.Error != "message_too_large" {
		t.Errorf("row: %+v", got)
	}
	if got.AvailableIn < 25*time.Second || got.AvailableIn > 90*time.Second {
		t.Errorf("due in %s, want a minute ± half", got.AvailableIn)
	}
}

// Guarantee 8: the same event id, and even the same payload, in several organisations. To the broker all but the first
// are duplicates, and they are other events.
func TestSameIDInTwoOrgs(t *testing.T) {
	w := newWorld(t)
	id := uuid.New()
	for _, org := range []string{"acme", "globex", "initech"} {
		w.insertAs(id, org, "OrderConfirmed", `{"the": "same"}`)
	}
	r := w.run()
	w.waitPublished(3)
	w.onceEach()
	for _, m := range w.messages() {
		if m.Subject != "events."+m.OrgID+".OrderConfirmed" {
			t.Errorf("subject %s for org %s", m.Subject, m.OrgID)
		}
	}
	if got := testutil.ToFloat64(r.metrics.duplicates.WithLabelValues("republished")); got != 2 {
		t.Errorf("metric duplicates republished: %v, want 2", got)
	}
	w.noAttempts()
}

// Guarantee 13: rows that were published and not marked are found in the stream, not published twice.
func TestUnmarkedPublicationIsVerified(t *testing.T) {
	w := newWorld(t)
	r := w.run()
	w.insertMany(30)
	w.waitPublished(30)
	before := w.messages()
	w.exec("UPDATE relayops.outbox_events SET status = 'PENDING', stream_seq = NULL, stream = NULL")
	w.waitPublished(30)
	if after := w.messages(); len(after) != len(before) {
		t.Fatalf("%d messages, want %d", len(after), len(before))
	}
	w.onceEach()
	if got := testutil.ToFloat64(r.metrics.duplicates.WithLabelValues("verified")); got != 30 {
		t.Errorf("metric duplicates verified: %v, want 30", got)
	}
}

// Guarantee 13: the broker remembers the id, and the message is gone (a purge does not clear the memory).
func TestDuplicateOfPurgedMessageIsPublishedAgain(t *testing.T) {
	w := newWorld(t)
	w.run()
	id := w.insert("acme", "OrderConfirmed", "1")
	w.waitPublished(1)
	js, err := jetstream.New(w.broker.Connect())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "EVENTS")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.exec("UPDATE relayops.outbox_events SET status = 'PENDING', stream_seq = NULL")
	w.waitPublished(1)
	messages := w.messages()
	if len(messages) != 1 || messages[0].MsgID != id.String()+".r1" || messages[0].ID != id {
		t.Fatalf("messages: %+v", messages)
	}
	w.onceEach()
}

// A message of somebody else under our id: another payload, or no event at all.
func TestForeignDuplicateIsPublishedAgain(t *testing.T) {
	w := newWorld(t)
	w.spec.Suspended = true
	w.run().waitReady() // Makes the stream.
	w.spec.Suspended = false
	js, err := jetstream.New(w.broker.Connect())
	if err != nil {
		t.Fatal(err)
	}
	id := uuid.New()
	foreign := &nats.Msg{Subject: "events.acme.Other", Data: []byte("no event"), Header: nats.Header{
		event.HeaderMsgID: {id.String()}, event.HeaderEventID: {id.String()}, event.HeaderOrg: {"acme"},
	}}
	if _, err := js.PublishMsg(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	w.insertAs(id, "acme", "OrderConfirmed", `{"mine": true}`)
	w.run()
	w.waitPublished(1)
	if got := w.row("acme", id); got.Sequence != 2 {
		t.Errorf("recorded at %d, want 2", got.Sequence)
	}
}

func TestOrgsWithAnyName(t *testing.T) {
	w := newWorld(t)
	orgs := []string{"a.b.c", "*", ">", "a b", " lead", "trail ", "Ünïcode 漢字", "50%", "a/b", "$SYS", "%2E", `"quoted"`}
	for _, org := range orgs {
		w.insert(org, "order.confirmed", `{}`)
	}
	w.run()
	w.waitPublished(len(orgs))
	w.onceEach()
	for _, m := range w.messages() {
		if strings.Count(m.Subject, ".") != 2 || strings.ContainsAny(m.Subject, "*> ") {
			t.Errorf("subject %q", m.Subject)
		}
		if m.Subject != event.Subject("events", m.OrgID, "order.confirmed") {
			t.Errorf("subject %q of org %q", m.Subject, m.OrgID)
		}
	}
}

func TestPayloads(t *testing.T) {
	w := newWorld(t)
	null := w.insert("acme", "Null", "null")
	big := w.insert("acme", "Big", `"`+strings.Repeat("x", event.MaxPayloadBytes-2)+`"`)
	inline := w.insert("acme", "Inline", `"`+strings.Repeat("y", w.spec.MaxInlinePayloadBytes-2)+`"`)
	over := w.insert("acme", "Over", `"`+strings.Repeat("z", w.spec.MaxInlinePayloadBytes-1)+`"`)
	w.run()
	w.waitPublished(4)
	for _, m := range w.messages() {
		switch m.ID {
		case null:
			if string(m.Body) != "null" {
				t.Errorf("null payload: body %q", m.Body)
			}
		case inline:
			if m.PayloadRef != "" || len(m.Body) != w.spec.MaxInlinePayloadBytes {
				t.Errorf("inline: ref %q, %d bytes", m.PayloadRef, len(m.Body))
			}
		case big, over:
			if m.PayloadRef != event.PayloadRefOutbox || len(m.Body) != 0 {
				t.Errorf("%s: ref %q, %d bytes", m.EventType, m.PayloadRef, len(m.Body))
			}
		}
	}
	w.onceEach()
}

// Batches are bounded in bytes: many rows just below the inline limit do not pile up in memory.
func TestBatchIsBoundedInBytes(t *testing.T) {
	w := newWorld(t)
	w.exec(`INSERT INTO relayops.outbox_events (org_id, event_type, payload)
		SELECT 'acme', 'Big', to_jsonb(repeat('x', 250000)) FROM generate_series(1, 100)`)
	r := w.run(func(spec *runspec.Relay) { spec.BatchSize, spec.Claimers = 1000, 1 })
	w.waitPublished(100)
	w.onceEach()
	if limit := r.limit(1000); limit > batchBytes(1)/250000 {
		t.Errorf("the next claim takes %d rows", limit)
	}
}

const camelTable = `
CREATE TYPE public."OutboxStatus" AS ENUM ('PENDING', 'PUBLISHED', 'FAILED');
CREATE TABLE public."OutboxEvent" (
	"id" text PRIMARY KEY, "orgId" text NOT NULL, "eventType" text NOT NULL, "aggregateId" text,
	"payload" json NOT NULL, "occurredAt" timestamp(3) NOT NULL DEFAULT (now() AT TIME ZONE 'UTC'),
	"status" public."OutboxStatus" NOT NULL DEFAULT 'PENDING',
	"availableAt" timestamp(3) NOT NULL DEFAULT (now() AT TIME ZONE 'UTC'), "attempts" integer NOT NULL DEFAULT 0,
	"publishedAt" timestamp(3))`

func camelMapping() runspec.Table {
	return runspec.Table{Schema: "public", Name: "OutboxEvent", Columns: map[string]string{
		"event_id": "id", "org_id": "orgId", "event_type": "eventType", "aggregate_id": "aggregateId",
		"occurred_at": "occurredAt", "available_at": "availableAt", "published_at": "publishedAt",
		"position": "", "event_version": "", "aggregate_type": "", "correlation_id": "", "causation_id": "",
		"payload_sha256": "", "headers": "", "created_at": "", "operation_version": "", "last_error": "", "stream": "",
		"stream_seq": "",
	}}
}

// A table of the application's own, with names in camel case, an enum, and timestamps without time zone. Rows that are
// no events count against themselves and block nobody.
func TestMappedTable(t *testing.T) {
	w := newWorld(t)
	w.exec(camelTable)
	ctx := context.Background()
	insert := func(id, org, eventType, payload string) {
		w.exec(`INSERT INTO public."OutboxEvent" ("id", "orgId", "eventType", "payload", "aggregateId") VALUES ($1, $2, $3, $4, 'a1')`,
			id, org, eventType, payload)
	}
	good := uuid.New()
	insert("not-a-uuid", "acme", "OrderConfirmed", "1")
	insert(uuid.NewString(), "acme", "1 bad type", "1")
	insert(uuid.NewString(), "", "OrderConfirmed", "1")
	insert(uuid.NewString(), "acme", "OrderConfirmed", `"\u0000"`)
	insert(good.String(), "acme", "OrderConfirmed", `{"b": 1,  "a": 2}`)
	w.exec(`UPDATE public."OutboxEvent" SET "occurredAt" = 'infinity' WHERE "id" = (SELECT "id" FROM public."OutboxEvent" WHERE "orgId" = '')`)
	r := w.run(func(spec *runspec.Relay) { spec.Table = camelMapping() })
	statuses := func(status string) (n int) {
		err := w.db.QueryRow(ctx, `SELECT count(*) FROM public."OutboxEvent" WHERE "status"::text = $1`, status).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	eventually(t, "the good row is published, the bad ones are FAILED", func() bool {
		return statuses("PUBLISHED") == 1 && statuses("FAILED") == 4
	})
	messages := w.messages()
	if len(messages) != 1 || messages[0].ID != good || messages[0].AggregateID != "a1" || messages[0].Position != 0 {
		t.Fatalf("messages: %+v", messages)
	}
	if string(messages[0].Body) != `{"b": 1,  "a": 2}` || time.Since(messages[0].OccurredAt).Abs() > time.Minute {
		t.Errorf("body %s, occurred at %s", messages[0].Body, messages[0].OccurredAt)
	}
	if got := testutil.ToFloat64(r.metrics.failures.WithLabelValues("invalid_event")); got != 12 {
		t.Errorf("metric publish_failures_total{invalid_event}: %v, want 12", got)
	}
	var late int
	err := w.db.QueryRow(ctx, `SELECT count(*) FROM public."OutboxEvent" WHERE "status"::text = 'PUBLISHED'
		AND abs(extract(epoch FROM "publishedAt" - (now() AT TIME ZONE 'UTC'))) > 60`).Scan(&late)
	if err != nil || late != 0 {
		t.Errorf("publishedAt is no UTC time (%v)", err)
	}
}

func TestCloudEvents(t *testing.T) {
	w := newWorld(t)
	id := w.insert("a b", "OrderConfirmed", `{}`)
	w.run(func(spec *runspec.Relay) { spec.CloudEvents = true })
	w.waitPublished(1)
	headers := w.messages()[0].Headers
	for name, want := range map[string]string{
		"ce-specversion": "1.0", "ce-id": id.String(), "ce-type": "OrderConfirmed",
		"ce-source": "/relayops/test/shop/main/orgs/a%20b", "content-type": "application/json",
	} {
		if got := first(headers[name]); got != want {
			t.Errorf("header %s: %q, want %q", name, got, want)
		}
	}
}

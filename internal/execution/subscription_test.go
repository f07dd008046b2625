package execution

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/testenv"
)

func TestSubscriptionBeginsOnce(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	emit := func() {
		exec(t, pool, `SELECT relayops.emit_event('acme', 'OrderConfirmed', '{}')`)
	}
	register := func(key string, s NewSubscription) Subscription {
		t.Helper()
		s.Trigger, s.Stream, s.StartSeq = "order.post", "RELAYOPS", 5
		made, err := newLedger(t, pool, pipeline(key)).Register(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	equal(t, "before the first event", register("a/b/new", NewSubscription{Start: FromNow}).FromPosition, 1)
	emit()
	emit()
	between := queryOne[time.Time](t, pool, "SELECT clock_timestamp()")
	emit()
	now := register("a/b/now", NewSubscription{Start: FromNow, Orgs: []string{"acme"}})
	equal(t, "from now", now, Subscription{FromPosition: 4, Stream: "RELAYOPS", StartSeq: 5, SweptSeq: 4, Made: true})
	equal(t, "from the beginning", register("a/b/all", NewSubscription{Start: FromBeginning}).FromPosition, 0)
	equal(t, "from a time", register("a/b/time", NewSubscription{Start: FromTime, StartTime: between}).FromPosition, 3)
	late := NewSubscription{Start: FromTime, StartTime: between.Add(time.Hour)}
	equal(t, "from a time to come", register("a/b/late", late).FromPosition, 4)
	emit()
	again := register("a/b/now", NewSubscription{Start: FromBeginning, Orgs: []string{"globex"}})
	now.Made = false
	equal(t, "registered again", again, now)
	equal(t, "orgs", rows(t, pool, "pipeline_subscriptions", "pipeline_key = 'a/b/now' AND orgs = '{globex}'"), 1)
}

func TestSubscriptionToAMappedTable(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	exec(t, pool, `CREATE TABLE public."Outbox" ("id" uuid PRIMARY KEY, "orgId" uuid, "eventType" text, payload jsonb,
		"occurredAt" timestamptz, status text, "availableAt" timestamptz, attempts int)`)
	table := outbox.Table{Name: "Outbox", Columns: map[string]string{
		"position": "", "event_id": "id", "org_id": "orgId", "event_type": "eventType", "occurred_at": "occurredAt",
		"available_at": "availableAt", "event_version": "", "aggregate_type": "", "aggregate_id": "",
		"correlation_id": "", "causation_id": "", "payload_sha256": "", "headers": "", "created_at": "",
		"operation_version": "", "last_error": "", "published_at": "", "stream": "", "stream_seq": "",
	}}
	ledger := newLedger(t, pool, func(c *Config) { c.Table = table })
	made, err := ledger.Register(t.Context(), NewSubscription{Trigger: "x", Stream: "S", StartSeq: 9, Start: FromNow})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "position", made.FromPosition, 0)

	org := uuid.New().String()
	d := newEvent(t, org)
	exec(t, pool, `INSERT INTO public."Outbox"
		VALUES ($1, $2, 'OrderConfirmed', '{"number": "A-1"}', now(), 'PUBLISHED', now(), 0)`, d.ID, org)
	lease := mustClaim(t, ledger, d, Claimed).Lease
	if err := ledger.HandBack(t.Context(), lease, 0, Ending{Keep: d}); err != nil {
		t.Fatal(err)
	}
	equal(t, "kept", rows(t, pool, "event_payloads", "true"), 0)
	found, err := ledger.Event(t.Context(), org, d.ID)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "hash", found.PayloadSHA256, d.PayloadSHA256)
}

func TestOneWorkerSweeps(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	if s, err := ledger.BeginSweep(t.Context(), 0); err != nil || s != nil {
		t.Fatalf("sweep without a subscription: %v, %v", s, err)
	}
	if _, err := ledger.Register(t.Context(), NewSubscription{Stream: "S", StartSeq: 5, Start: FromNow}); err != nil {
		t.Fatal(err)
	}
	s, err := ledger.BeginSweep(t.Context(), 0)
	if err != nil || s == nil {
		t.Fatalf("sweep: %v, %v", s, err)
	}
	if second, err := ledger.BeginSweep(t.Context(), time.Minute); err != nil || second != nil {
		t.Errorf("a second sweep within the interval: %v, %v", second, err)
	}
	if moved, err := ledger.Swept(t.Context(), s, 40); err != nil || !moved {
		t.Errorf("move the cursor: %v, %v", moved, err)
	}
	if moved, err := ledger.Swept(t.Context(), s, 30); err != nil || moved {
		t.Errorf("move the cursor from where it is not: %v, %v", moved, err)
	}
	if s, err = ledger.Subscription(t.Context()); err != nil || s.SweptSeq != 40 {
		t.Errorf("cursor: %+v, %v", s, err)
	}
}

func TestRecoverOnce(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	d := newEvent(t, "acme")
	for i, want := range []bool{true, false} {
		recovered, err := ledger.Recover(t.Context(), request(d))
		if err != nil || recovered != want {
			t.Fatalf("recovery %d: %v, %v", i, recovered, err)
		}
	}
	recorded, err := ledger.Recorded(t.Context(), []Key{KeyOf(d), {OrgID: "globex", EventID: d.ID, OperationVersion: 1}})
	if err != nil || len(recorded) != 1 || recorded[KeyOf(d)] != d.PayloadSHA256 {
		t.Fatalf("recorded: %v, %v", recorded, err)
	}
	if _, err := ledger.Event(t.Context(), "acme", d.ID); err != nil {
		t.Errorf("the envelope was not kept: %v", err)
	}
	claim := mustClaimDue(t, ledger, 1, 1)[0]
	equal(t, "attempt", claim.Lease.Attempt, 1)
	equal(t, "first", claim.First(), true)
}

func TestMessageDeadLetterOnce(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	d := newEvent(t, "acme")
	for range 2 {
		if err := ledger.DeadLetterMessage(t.Context(), Message{Stream: "S", Seq: 3}, engine.CodeSchemaInvalid, nil); err != nil {
			t.Fatal(err)
		}
		if err := ledger.DeadLetterMessage(t.Context(), Message{Stream: "S", Seq: 4}, engine.CodePayloadConflict, d); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "undecodable", queryOne[int](t, pool, `SELECT count(*) FROM relayops.dead_letters
		WHERE code = 'schema_invalid' AND org_id = '' AND event_id IS NULL AND stream = 'S' AND stream_seq = 3`), 1)
	equal(t, "conflicts", queryOne[int](t, pool, `SELECT count(*) FROM relayops.dead_letters
		WHERE code = 'payload_conflict' AND org_id = 'acme' AND event_id = $1 AND stream_seq = 4
		  AND execution_id IS NULL`, d.ID), 1)
}

func TestRevisionIsRecordedOnce(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	first := engine.Definition{Nodes: []engine.Node{{ID: "start", Type: "start"}}}
	other := engine.Definition{Nodes: []engine.Node{{ID: "other", Type: "start", Config: json.RawMessage(`{}`)}}}
	for _, definition := range []engine.Definition{first, other} {
		if err := ledger.RecordRevision(t.Context(), "r1", definition); err != nil {
			t.Fatal(err)
		}
	}
	found, err := ledger.Revision(t.Context(), "r1")
	if err != nil || len(found.Nodes) != 1 || found.Nodes[0].ID != "start" {
		t.Errorf("revision: %+v, %v", found, err)
	}
	if _, err := ledger.Revision(t.Context(), "r2"); !errors.Is(err, ErrRevisionMissing) {
		t.Errorf("a revision that is not there: %v", err)
	}
	if _, err := newLedger(t, pool, pipeline("a/b/c")).Revision(t.Context(), "r1"); !errors.Is(err, ErrRevisionMissing) {
		t.Errorf("another pipeline's revision: %v", err)
	}
}

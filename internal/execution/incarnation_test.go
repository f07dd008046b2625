package execution

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/relayops/relayops/internal/deadletter"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/testenv"
)

// Sequences count within one incarnation of a stream: a subscription follows the stream to the next one, in one step.
func TestSubscriptionFollowsItsStream(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	first := time.Date(2026, 1, 1, 0, 0, 0, 123456789, time.UTC)
	second := first.Add(time.Hour)
	made, err := ledger.Register(t.Context(), NewSubscription{Stream: "S", StartSeq: 5, Start: FromNow, Incarnation: first})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "incarnation", made.Incarnation, first.Truncate(time.Microsecond))
	if moved, err := ledger.Swept(t.Context(), &made, 40); err != nil || !moved {
		t.Fatalf("move the cursor: %v, %v", moved, err)
	}
	made.SweptSeq, made.Made = 40, false
	rebased := func(what, stream string, incarnation time.Time, last uint64, want bool) {
		t.Helper()
		found, err := ledger.Rebase(t.Context(), stream, incarnation, last)
		if err != nil {
			t.Fatal(err)
		}
		if (found != nil) != want {
			t.Fatalf("%s: %+v, rebased: want %t", what, found, want)
		}
		if want {
			equal(t, what, *found, Subscription{
				FromPosition: made.FromPosition, Stream: stream, Incarnation: incarnation.Truncate(time.Microsecond),
				StartSeq: 1, SweptSeq: 0,
			})
		}
	}
	rebased("the same stream", "S", first, 40, false)
	rebased("a longer stream that was made anew", "S", second, 1000, true)
	rebased("the same stream again", "S", second, 1000, false)
	if moved, err := ledger.Swept(t.Context(), &made, 50); err != nil || moved {
		t.Errorf("move the cursor of a stream that is gone: %v, %v", moved, err)
	}
	now, err := ledger.Subscription(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if moved, err := ledger.Swept(t.Context(), now, 50); err != nil || !moved {
		t.Fatalf("move the cursor: %v, %v", moved, err)
	}
	rebased("old data, restored", "S", second, 49, true)
	rebased("another stream", "T", second, 49, true)
}

// The cursor of a former incarnation does not move the one of the next, also where both stand at the same place.
func TestSweepOfAStreamThatIsGone(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	made, err := ledger.Register(t.Context(), NewSubscription{Stream: "S", StartSeq: 1, Start: FromNow, Incarnation: at})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.Rebase(t.Context(), "S", at.Add(time.Second), 0); err != nil {
		t.Fatal(err)
	}
	if moved, err := ledger.Swept(t.Context(), &made, 50); err != nil || moved {
		t.Errorf("moved: %v, %v", moved, err)
	}
}

// A dead letter belongs to one message: not to another one that has its sequence later, and not to an execution whose
// row is gone.
func TestDeadLettersOfOneSequence(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	d := newEvent(t, "acme")
	claim := mustClaim(t, ledger, d, Claimed)
	if err := ledger.DeadLetter(t.Context(), claim.Lease, deadletter.New(engine.CodeHTTPStatus), Ending{}); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 1, time.UTC)
	for range 2 {
		for _, stored := range []time.Time{at, at.Add(time.Hour)} {
			m := Message{Stream: claim.Stream, Seq: claim.StreamSeq, StoredAt: stored, OrgID: "globex"}
			if err := ledger.DeadLetterMessage(t.Context(), m, engine.CodeSchemaInvalid, nil); err != nil {
				t.Fatal(err)
			}
		}
		exec(t, pool, `DELETE FROM relayops.pipeline_executions`)
	}
	equal(t, "of messages", rows(t, pool, "dead_letters", "org_id = 'globex' AND message_stored_at IS NOT NULL"), 2)
	equal(t, "of executions", rows(t, pool, "dead_letters", "org_id = 'acme' AND message_stored_at IS NULL"), 1)
}

// Names that the database cannot hold do not keep a dead letter from being written.
func TestDeadLetterOfNamesThatCannotBeStored(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	d := newEvent(t, "acme")
	d.EventType = "a\x00b"
	if err := ledger.DeadLetterMessage(t.Context(), Message{Stream: "S", Seq: 1, OrgID: "acme"},
		engine.CodeSchemaInvalid, d); err != nil {
		t.Fatal(err)
	}
	if err := ledger.DeadLetterMessage(t.Context(), Message{Stream: "S", Seq: 2, OrgID: "\xff"},
		engine.CodeSchemaInvalid, nil); err != nil {
		t.Fatal(err)
	}
	equal(t, "dead letters", rows(t, pool, "dead_letters", "code = 'schema_invalid'"), 2)
	equal(t, "with the organisation", rows(t, pool, "dead_letters", "org_id = 'acme'"), 1)
}

// A search that takes too long is ended by the server, and says what to do; it may take longer than other statements.
func TestSearchForTheFirstPositionIsBounded(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	exec(t, pool, `SELECT relayops.emit_event('acme', 'OrderConfirmed', '{}')`)
	exec(t, pool, `ALTER TABLE relayops.outbox_events RENAME TO outbox_rows`)
	exec(t, pool, `CREATE VIEW relayops.outbox_events AS SELECT r.* FROM relayops.outbox_rows r,
		LATERAL (SELECT r.position, pg_sleep(0.7) OFFSET 0) AS slow`)
	since := time.Now().Add(-time.Hour)
	search := func(limit time.Duration) (int64, error) {
		ledger := newLedger(t, pool, func(c *Config) { c.StatementTimeout, c.SearchTime = 300*time.Millisecond, limit })
		return ledger.firstPositionSince(t.Context(), since)
	}
	_, err := search(200 * time.Millisecond)
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), `an index of "created_at" helps`) ||
		!strings.Contains(err.Error(), "57014") {
		t.Errorf("search: %v", err)
	}
	if first, err := search(20 * time.Second); err != nil || first != 1 {
		t.Errorf("search with more time: %d, %v", first, err)
	}
}

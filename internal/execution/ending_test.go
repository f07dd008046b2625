package execution

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/deadletter"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/testenv"
)

func TestSucceedRecordsStepsTagsAndTime(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	lease := mustClaim(t, ledger, newEvent(t, "acme"), Claimed).Lease
	done := step("ok")
	done.Tags = []engine.StatusTag{{Phase: "order.post", Tag: "success", Name: "Done", At: done.FinishedAt}}
	ending := Ending{Steps: []engine.Step{step("start"), done}, Executed: 42 * time.Millisecond}
	if err := ledger.Succeed(t.Context(), lease, ending); err != nil {
		t.Fatal(err)
	}
	equal(t, "state", ofExecution[string](t, pool, "state", "true"), "SUCCEEDED")
	equal(t, "executed", ofExecution[int](t, pool, "executed_ms", "true"), 42)
	equal(t, "tag", ofExecution[string](t, pool, "status_tags->0->>'tag'", "true"), "success")
	equal(t, "finished", ofExecution[bool](t, pool, "finished_at IS NOT NULL AND lease_until IS NULL", "true"), true)
	equal(t, "steps", rows(t, pool, "step_executions", "fencing_token = 1 AND duration_us = 1000"), 2)
	if err := ledger.Succeed(t.Context(), lease, ending); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("ending it twice: %v, want ErrLeaseLost", err)
	}
}

func TestHandBackGivesTheAttemptBack(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	d := newEvent(t, "acme")
	lease := mustClaim(t, ledger, d, Claimed).Lease
	cut := step("slow")
	cut.Outcome, cut.Branch, cut.Output = engine.StepInterrupted, "", nil
	if err := ledger.HandBack(t.Context(), lease, 0, Ending{Steps: []engine.Step{step("start"), cut}}); err != nil {
		t.Fatal(err)
	}
	claim := mustClaimDue(t, ledger, 5, 1)[0]
	equal(t, "attempt", claim.Lease.Attempt, 1)
	equal(t, "token", claim.Lease.Token, 2)
	equal(t, "completed steps", len(claim.Completed), 1)
	// The same attempt number: the interrupted step is written over.
	if err := ledger.Succeed(t.Context(), claim.Lease, Ending{Steps: []engine.Step{step("slow")}}); err != nil {
		t.Fatal(err)
	}
	equal(t, "steps", rows(t, pool, "step_executions", "node_id = 'slow' AND outcome = 'SUCCEEDED'"), 1)
}

func TestDeadLetterIsWrittenWithTheState(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	d := newEvent(t, "acme")
	lease := mustClaim(t, ledger, d, Claimed).Lease
	record := deadletter.Record{Code: engine.CodeHTTPStatus, NodeID: "notify", HTTPStatus: 404}
	if err := ledger.DeadLetter(t.Context(), lease, record, Ending{Keep: d}); err != nil {
		t.Fatal(err)
	}
	equal(t, "state", ofExecution[string](t, pool, "state", "true"), "DEAD_LETTERED")
	equal(t, "dead letters", queryOne[int](t, pool, `SELECT count(*) FROM relayops.dead_letters
		WHERE execution_id = $1 AND event_id = $2 AND org_id = 'acme' AND pipeline_key = $3 AND operation_version = 1
		  AND code = 'http_status' AND node_id = 'notify' AND http_status = 404 AND attempt = 1
		  AND event_type = 'OrderConfirmed' AND stream = 'RELAYOPS' AND stream_seq = 7`,
		lease.ExecutionID, d.ID, testPipeline), 1)
	mustClaim(t, ledger, d, AlreadyTerminal)
	mustClaimDue(t, ledger, 5, 0)
}

func TestEnvelopeIsKeptUnlessTheOutboxHasIt(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)

	t.Run("from elsewhere", func(t *testing.T) {
		d := newEvent(t, "acme")
		d.Headers, d.AggregateID = map[string]string{"traceparent": "00-1-2-01"}, "A-1"
		lease := mustClaim(t, ledger, d, Claimed).Lease
		if _, err := ledger.Retry(t.Context(), lease, engine.CodeTimeout, 0, Ending{Keep: d}); err != nil {
			t.Fatal(err)
		}
		kept, err := ledger.Event(t.Context(), "acme", d.ID)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "payload", string(kept.Payload), `{"number": "A-1"}`)
		equal(t, "hash", kept.PayloadSHA256, d.PayloadSHA256)
		equal(t, "aggregate", kept.AggregateID, "A-1")
		equal(t, "trace", kept.Headers["traceparent"], "00-1-2-01")
		equal(t, "type", kept.EventType, d.EventType)
		if !kept.OccurredAt.Equal(d.OccurredAt) {
			t.Errorf("occurred at %v, want %v", kept.OccurredAt, d.OccurredAt)
		}
		if _, err := ledger.Event(t.Context(), "globex", d.ID); !errors.Is(err, ErrNoEvent) {
			t.Errorf("another org reads the event: %v", err)
		}
	})
	t.Run("only while it may run again", func(t *testing.T) {
		for name, end := range map[string]func(lease Lease, ending Ending) error{
			"succeeded": func(lease Lease, ending Ending) error { return ledger.Succeed(t.Context(), lease, ending) },
			"cancelled": func(lease Lease, ending Ending) error {
				return ledger.Cancel(t.Context(), lease, engine.CodeCancelledByPipeline, ending)
			},
			"dead": func(lease Lease, ending Ending) error {
				return ledger.DeadLetter(t.Context(), lease, deadletter.Record{Code: engine.CodeTimeout}, ending)
			},
		} {
			d := newEvent(t, name)
			if err := end(mustClaim(t, ledger, d, Claimed).Lease, Ending{Keep: d}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		equal(t, "kept", queryOne[string](t, pool, `SELECT string_agg(org_id, ',') FROM relayops.event_payloads
			WHERE org_id IN ('succeeded', 'cancelled', 'dead')`), "dead")
	})
	t.Run("from the outbox", func(t *testing.T) {
		d := newEvent(t, "globex")
		exec(t, pool, "SELECT relayops.emit_event('globex', 'OrderConfirmed', $1::jsonb, event_id => $2)",
			string(d.Payload), d.ID)
		lease := mustClaim(t, ledger, d, Claimed).Lease
		if err := ledger.HandBack(t.Context(), lease, 0, Ending{Keep: d}); err != nil {
			t.Fatal(err)
		}
		equal(t, "rows", rows(t, pool, "event_payloads", "org_id = 'globex'"), 0)
		found, err := ledger.Event(t.Context(), "globex", d.ID)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "payload", string(found.Payload), `{"number": "A-1"}`)
	})
	t.Run("nowhere", func(t *testing.T) {
		if _, err := ledger.Event(t.Context(), "acme", uuid.New()); !errors.Is(err, ErrNoEvent) {
			t.Errorf("an event that is not there: %v", err)
		}
	})
	t.Run("not as jsonb", func(t *testing.T) {
		d := newEvent(t, "acme")
		d.Payload = json.RawMessage(`1e999999`)
		lease := mustClaim(t, ledger, d, Claimed).Lease
		if _, err := ledger.Retry(t.Context(), lease, engine.CodeTimeout, 0, Ending{Keep: d}); !errors.Is(err, ErrRefused) {
			t.Errorf("a payload that jsonb cannot hold: %v, want ErrRefused", err)
		}
		if _, err := ledger.Retry(t.Context(), lease, engine.CodeTimeout, 0, Ending{}); err != nil {
			t.Errorf("the refusal cost the lease: %v", err)
		}
	})
}

// Guarantee 3: an emitted event commits with its step, under the token, or not at all.
func TestEmittedEventsCommitWithTheirStep(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	emits := func(t *testing.T) (engine.Step, event.Envelope) {
		envelope, err := event.New("acme", "InvoiceRequested", map[string]int{"total": 1})
		if err != nil {
			t.Fatal(err)
		}
		s := step("emit")
		s.Events = []event.Envelope{envelope}
		return s, envelope
	}
	count := func(t *testing.T, id uuid.UUID) int {
		return rows(t, pool, "outbox_events", "org_id = 'acme' AND event_id = $1", id)
	}
	t.Run("in the journal", func(t *testing.T) {
		lease := mustClaim(t, ledger, newEvent(t, "acme"), Claimed).Lease
		s, emitted := emits(t)
		if err := ledger.CommitSteps(t.Context(), lease, []engine.Step{s}); err != nil {
			t.Fatal(err)
		}
		equal(t, "events", count(t, emitted.ID), 1)
	})
	t.Run("at the end", func(t *testing.T) {
		lease := mustClaim(t, ledger, newEvent(t, "acme"), Claimed).Lease
		s, emitted := emits(t)
		if err := ledger.Succeed(t.Context(), lease, Ending{Steps: []engine.Step{s}}); err != nil {
			t.Fatal(err)
		}
		equal(t, "events", count(t, emitted.ID), 1)
	})
	t.Run("not without the lease", func(t *testing.T) {
		lease := mustClaim(t, ledger, newEvent(t, "acme"), Claimed).Lease
		lease.Token++
		s, emitted := emits(t)
		if err := ledger.CommitSteps(t.Context(), lease, []engine.Step{s}); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("steps: %v", err)
		}
		if err := ledger.Succeed(t.Context(), lease, Ending{Steps: []engine.Step{s}}); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("end: %v", err)
		}
		equal(t, "events", count(t, emitted.ID), 0)
	})
	t.Run("not when the outbox refuses it", func(t *testing.T) {
		lease := mustClaim(t, ledger, newEvent(t, "acme"), Claimed).Lease
		s, emitted := emits(t)
		exec(t, pool, `SELECT relayops.emit_event('acme', 'InvoiceRequested', '{"total": 2}', event_id => $1)`, emitted.ID)
		err := ledger.Succeed(t.Context(), lease, Ending{Steps: []engine.Step{s}})
		if !errors.Is(err, outbox.ErrPayloadConflict) {
			t.Errorf("end: %v, want ErrPayloadConflict", err)
		}
		equal(t, "state", ofExecution[string](t, pool, "state", "execution_id = $1", lease.ExecutionID), "RUNNING")
		equal(t, "steps", rows(t, pool, "step_executions", "execution_id = $1", lease.ExecutionID), 0)
	})
}

func TestRenewProlongsAndCountsTime(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	brief := newLedger(t, pool, func(c *Config) { c.Lease = 100 * time.Millisecond })
	ledger := newLedger(t, pool)
	d := newEvent(t, "acme")
	lease := mustClaim(t, brief, d, Claimed).Lease
	other := mustClaim(t, brief, newEvent(t, "acme"), Claimed).Lease
	wrong := other
	wrong.Token++
	lost, err := ledger.Renew(t.Context(), []Renewal{{lease, 700 * time.Millisecond}, {wrong, 0}})
	if err != nil || len(lost) != 1 || lost[0] != wrong {
		t.Fatalf("lost %v, %v", lost, err)
	}
	time.Sleep(150 * time.Millisecond)
	claim := mustClaim(t, ledger, d, LeasedByOther)
	equal(t, "executed", claim.Executed, 700*time.Millisecond)
}

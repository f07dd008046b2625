package execution

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/testenv"
)

func TestClaimBeginsAnExecution(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	d := newEvent(t, "acme")
	claim := mustClaim(t, ledger, d, Claimed)
	equal(t, "attempt", claim.Lease.Attempt, 1)
	equal(t, "token", claim.Lease.Token, 1)
	equal(t, "first", claim.First(), true)
	equal(t, "revision", claim.Revision, "r1")
	equal(t, "stream position", claim.StreamSeq, 7)
	equal(t, "event", claim.EventID, d.ID)
	equal(t, "hash", claim.PayloadSHA256, d.PayloadSHA256)
	if !claim.OccurredAt.Equal(d.OccurredAt) {
		t.Errorf("occurred at %v, want %v", claim.OccurredAt, d.OccurredAt)
	}
}

func TestClaimWithoutAnOrgIsRefused(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	d := newEvent(t, "acme")
	d.OrgID = ""
	if _, err := ledger.Claim(t.Context(), request(d)); !errors.Is(err, ErrNoOrg) {
		t.Errorf("claim without an org: %v", err)
	}
	if _, err := ledger.Recover(t.Context(), request(d)); !errors.Is(err, ErrNoOrg) {
		t.Errorf("recover without an org: %v", err)
	}
}

func TestVerdicts(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)

	t.Run("terminal", func(t *testing.T) {
		d := newEvent(t, "acme")
		if err := ledger.Succeed(t.Context(), mustClaim(t, ledger, d, Claimed).Lease, Ending{}); err != nil {
			t.Fatal(err)
		}
		equal(t, "state", mustClaim(t, ledger, d, AlreadyTerminal).State, Succeeded)
	})
	t.Run("waiting", func(t *testing.T) {
		d := newEvent(t, "acme")
		lease := mustClaim(t, ledger, d, Claimed).Lease
		if _, err := ledger.Retry(t.Context(), lease, engine.CodeTimeout, time.Hour, Ending{}); err != nil {
			t.Fatal(err)
		}
		mustClaim(t, ledger, d, WaitingForRetry)
		mustClaimDue(t, ledger, 10, 0)
	})
	t.Run("leased", func(t *testing.T) {
		d := newEvent(t, "acme")
		mustClaim(t, ledger, d, Claimed)
		claim := mustClaim(t, ledger, d, LeasedByOther)
		if claim.LeaseLeft <= 50*time.Second || claim.LeaseLeft > time.Minute {
			t.Errorf("lease left: %v, want nearly a minute", claim.LeaseLeft)
		}
		equal(t, "token", claim.Lease.Token, 0)
	})
	t.Run("another payload", func(t *testing.T) {
		d := newEvent(t, "acme")
		lease := mustClaim(t, ledger, d, Claimed).Lease
		other := *d
		other.PayloadSHA256[0] ^= 1
		mustClaim(t, ledger, &other, PayloadConflict)
		if err := ledger.Succeed(t.Context(), lease, Ending{}); err != nil {
			t.Errorf("the conflict touched the execution: %v", err)
		}
		mustClaim(t, ledger, &other, PayloadConflict)
		mustClaim(t, ledger, d, AlreadyTerminal)
	})
	t.Run("another payload, when the row could be claimed", func(t *testing.T) {
		d := newEvent(t, "acme")
		lease := mustClaim(t, ledger, d, Claimed).Lease
		if err := ledger.HandBack(t.Context(), lease, 0, Ending{}); err != nil {
			t.Fatal(err)
		}
		other := *d
		other.PayloadSHA256[0] ^= 1
		mustClaim(t, ledger, &other, PayloadConflict)
		equal(t, "token", mustClaim(t, ledger, d, Claimed).Lease.Token, lease.Token+1)
	})
	t.Run("lease that ran out, taking over not allowed", func(t *testing.T) {
		d := newEvent(t, "acme")
		mustClaim(t, newLedger(t, pool, shortLease), d, Claimed)
		time.Sleep(10 * time.Millisecond)
		careful := request(d)
		careful.TakeOver = false
		claim, err := ledger.Claim(t.Context(), careful)
		if err != nil || claim.Verdict != LeasedByOther || claim.LeaseLeft > 0 {
			t.Errorf("claim: %+v, %v", claim, err)
		}
		if due, err := ledger.ClaimDue(t.Context(), 10, false); err != nil || len(due) > 0 {
			t.Errorf("claimed %d due executions, %v", len(due), err)
		}
		mustClaim(t, ledger, d, Claimed)
	})
}

// Guarantee 8: the same ids in two orgs, and in two pipelines, are different executions.
func TestOrgsAndPipelinesNeverMeet(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	d := newEvent(t, "acme")
	first := mustClaim(t, ledger, d, Claimed)
	other := *d
	other.OrgID = "globex"
	other.PayloadSHA256[0] ^= 1
	second := mustClaim(t, ledger, &other, Claimed)
	third := mustClaim(t, newLedger(t, pool, pipeline("shop/default/other")), d, Claimed)
	if first.Lease.ExecutionID == second.Lease.ExecutionID || first.Lease.ExecutionID == third.Lease.ExecutionID {
		t.Error("two keys share an execution")
	}
	again := *d
	again.OperationVersion = 2
	mustClaim(t, ledger, &again, Claimed)
}

// Guarantee 3: a lease that ran out is taken over with a higher token, and the old holder can record nothing.
func TestStaleHolderIsRefused(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	dead, ledger := newLedger(t, pool, shortLease, owner("dead")), newLedger(t, pool, owner("alive"))
	d := newEvent(t, "acme")
	stale := mustClaim(t, dead, d, Claimed).Lease
	time.Sleep(10 * time.Millisecond)
	fresh := mustClaim(t, ledger, d, Claimed).Lease
	equal(t, "token", fresh.Token, stale.Token+1)
	equal(t, "attempt", fresh.Attempt, 2)

	ending := Ending{Steps: []engine.Step{step("stale")}}
	for name, record := range map[string]func() error{
		"succeed":  func() error { return dead.Succeed(t.Context(), stale, ending) },
		"steps":    func() error { return dead.CommitSteps(t.Context(), stale, ending.Steps) },
		"cancel":   func() error { return dead.Cancel(t.Context(), stale, engine.CodeCancelledByPipeline, ending) },
		"handback": func() error { return dead.HandBack(t.Context(), stale, 0, ending) },
	} {
		if err := record(); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("%s by a stale holder: %v, want ErrLeaseLost", name, err)
		}
	}
	lost, err := dead.Renew(t.Context(), []Renewal{{Lease: stale}})
	if err != nil || len(lost) != 1 {
		t.Errorf("renewal by a stale holder: %v lost, %v", lost, err)
	}
	equal(t, "steps", rows(t, pool, "step_executions", "true"), 0)
	if err := ledger.Succeed(t.Context(), fresh, Ending{}); err != nil {
		t.Error(err)
	}
}

// An event that crashes every worker is not run for ever: after the last attempt nothing of it runs.
func TestCrashLoopUsesAttemptsUp(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool, shortLease)
	d := newEvent(t, "acme")
	for attempt := 1; attempt <= 3; attempt++ {
		equal(t, "attempt", mustClaim(t, ledger, d, Claimed).Lease.Attempt, attempt)
		time.Sleep(10 * time.Millisecond)
	}
	exhausted := mustClaim(t, ledger, d, AttemptsExhausted)
	equal(t, "attempt", exhausted.Lease.Attempt, 3)
	// The one that was to write the dead letter crashed too: another one finds the same.
	time.Sleep(10 * time.Millisecond)
	due := mustClaimDue(t, ledger, 5, 1)
	equal(t, "verdict", due[0].Verdict, AttemptsExhausted)
}

func TestDeadlineCancelsAtTheClaim(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	within := func(deadline time.Duration) func(*Config) {
		return func(c *Config) { c.Deadline = deadline }
	}
	t.Run("of a new event", func(t *testing.T) {
		ledger := newLedger(t, pool, within(time.Minute))
		d := newEvent(t, "acme")
		d.OccurredAt = time.Now().Add(-time.Hour)
		claim := mustClaim(t, ledger, d, DeadlinePassed)
		equal(t, "state", claim.State, Cancelled)
		equal(t, "attempts", ofExecution[int](t, pool, "attempt", "event_id = $1", d.ID), 0)
		mustClaim(t, ledger, d, AlreadyTerminal)
	})
	t.Run("of one that is due", func(t *testing.T) {
		ledger := newLedger(t, pool, within(200*time.Millisecond))
		d := newEvent(t, "acme")
		d.OccurredAt = time.Now()
		lease := mustClaim(t, ledger, d, Claimed).Lease
		if state, err := ledger.Retry(t.Context(), lease, engine.CodeTimeout, 0, Ending{}); err != nil || state != Retry {
			t.Fatal(state, err)
		}
		time.Sleep(250 * time.Millisecond)
		due := mustClaimDue(t, ledger, 5, 1)
		equal(t, "verdict", due[0].Verdict, DeadlinePassed)
		equal(t, "code", ofExecution[string](t, pool, "code", "event_id = $1", d.ID), "deadline_exceeded")
	})
	t.Run("of an attempt that fails after it", func(t *testing.T) {
		ledger := newLedger(t, pool, within(100*time.Millisecond))
		d := newEvent(t, "acme")
		d.OccurredAt = time.Now()
		lease := mustClaim(t, ledger, d, Claimed).Lease
		time.Sleep(150 * time.Millisecond)
		state, err := ledger.Retry(t.Context(), lease, engine.CodeTimeout, time.Second, Ending{})
		if err != nil || state != Cancelled {
			t.Errorf("retry after the deadline: %s, %v; want CANCELLED", state, err)
		}
	})
}

func TestClaimDueResumesWithRecordedSteps(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	d := newEvent(t, "acme")
	lease := mustClaim(t, ledger, d, Claimed).Lease
	failed, skipped, caught := step("failed"), step("skipped"), step("caught")
	failed.Outcome, failed.Branch, failed.Code, failed.Output = engine.StepFailed, "", engine.CodeTimeout, nil
	skipped.Outcome, skipped.Branch = engine.StepSkipped, ""
	caught.Outcome, caught.Branch, caught.Code = engine.StepFailed, engine.BranchError, engine.CodeHTTPStatus
	caught.HTTPStatus = 404
	done := step("done")
	done.Tags = []engine.StatusTag{{Phase: "order.post", Tag: "success", Name: "Done", At: done.FinishedAt}}
	if err := ledger.CommitSteps(t.Context(), lease, []engine.Step{done, caught}); err != nil {
		t.Fatal(err)
	}
	ending := Ending{Steps: []engine.Step{failed, skipped}, Executed: 1500 * time.Millisecond}
	if _, err := ledger.Retry(t.Context(), lease, engine.CodeTimeout, 0, ending); err != nil {
		t.Fatal(err)
	}
	claim := mustClaimDue(t, ledger, 5, 1)[0]
	equal(t, "verdict", claim.Verdict, Claimed)
	equal(t, "attempt", claim.Lease.Attempt, 2)
	equal(t, "executed", claim.Executed, 1500*time.Millisecond)
	if len(claim.Tags) != 1 || claim.Tags[0].Tag != "success" {
		t.Errorf("tags: %+v", claim.Tags)
	}
	if len(claim.Completed) != 2 {
		t.Fatalf("completed steps: %+v", claim.Completed)
	}
	for _, s := range claim.Completed {
		switch s.NodeID {
		case "done":
			equal(t, "output", string(s.Output), `{"of": "done"}`)
			if !s.StartedAt.Equal(done.StartedAt) {
				t.Errorf("started at %v, want %v", s.StartedAt, done.StartedAt)
			}
		case "caught":
			equal(t, "status", s.HTTPStatus, 404)
			equal(t, "branch", s.Branch, engine.BranchError)
		default:
			t.Errorf("step %s counts as completed", s.NodeID)
		}
	}
}

// Guarantee 3: however many workers claim one event at once, one gets it.
func TestManyClaimersOneLease(t *testing.T) {
	url := testenv.Database(t)
	const claimers, events = 8, 20
	deliveries := make([]*Request, events)
	for i := range deliveries {
		r := request(newEvent(t, "acme"))
		deliveries[i] = &r
	}
	var mu sync.Mutex
	claimed := map[string]int{}
	var wait sync.WaitGroup
	for range claimers {
		pool := testenv.Pool(t, url)
		ledger := newLedger(t, pool)
		wait.Go(func() {
			for _, r := range deliveries {
				claim, err := ledger.Claim(t.Context(), *r)
				if err != nil {
					t.Error(err)
					return
				}
				if claim.Verdict == Claimed {
					mu.Lock()
					claimed[claim.EventID.String()]++
					mu.Unlock()
				}
			}
		})
	}
	wait.Wait()
	equal(t, "events claimed", len(claimed), events)
	for id, n := range claimed {
		equal(t, "claims of "+id, n, 1)
	}
}

func TestManyClaimersOfDueExecutions(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	const events = 60
	for range events {
		lease := mustClaim(t, ledger, newEvent(t, "acme"), Claimed).Lease
		if err := ledger.HandBack(t.Context(), lease, 0, Ending{}); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	claimed := map[string]int{}
	var wait sync.WaitGroup
	for range 6 {
		wait.Go(func() {
			for range 20 {
				claims, err := ledger.ClaimDue(t.Context(), 7, true)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, claim := range claims {
					claimed[claim.EventID.String()]++
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	equal(t, "executions claimed", len(claimed), events)
	for id, n := range claimed {
		equal(t, "claims of "+id, n, 1)
	}
}

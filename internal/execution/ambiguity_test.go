package execution

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/deadletter"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/testenv"
)

// Guarantee 13: whatever statement loses its answer, and whether or not it was committed before, its result is there
// exactly once, and the caller knows it.
func TestLostAnswers(t *testing.T) {
	commit := []byte("commit")
	emit := func(t *testing.T) engine.Step {
		envelope, err := event.New("acme", "InvoiceRequested", nil)
		if err != nil {
			t.Fatal(err)
		}
		s := step("emit")
		s.Events = []event.Envelope{envelope}
		s.Tags = []engine.StatusTag{{Tag: "success"}}
		return s
	}
	tagged := step("tagged")
	tagged.Tags = []engine.StatusTag{{Tag: "success"}}
	type situation struct {
		ledger *Ledger
		direct *pgxpool.Pool
		d      *event.Delivery
		lease  Lease
	}
	const (
		nothing = iota
		claimed
		due
	)
	for name, statement := range map[string]struct {
		prepared int
		// marker is found in the message to cut at.
		marker func(s *situation) []byte
		run    func(t *testing.T, s *situation) error
		state  string
		// attempt, steps, tags and events are what there is afterwards.
		attempt, steps, tags, events int
	}{
		"claim": {
			nothing, func(s *situation) []byte { return s.d.ID[:] },
			func(t *testing.T, s *situation) error { mustClaim(t, s.ledger, s.d, Claimed); return nil },
			"RUNNING", 1, 0, 0, 0,
		},
		"recover": {
			nothing, func(s *situation) []byte { return s.d.ID[:] },
			func(t *testing.T, s *situation) error {
				_, err := s.ledger.Recover(t.Context(), request(s.d))
				return err
			},
			"RETRY", 0, 0, 0, 0,
		},
		"claim due": {
			due, func(*situation) []byte { return []byte(testPipeline) },
			func(t *testing.T, s *situation) error { mustClaimDue(t, s.ledger, 10, 1); return nil },
			"RUNNING", 1, 0, 0, 0,
		},
		"steps": {
			claimed, func(s *situation) []byte { return s.lease.ExecutionID[:] },
			func(t *testing.T, s *situation) error {
				return s.ledger.CommitSteps(t.Context(), s.lease, []engine.Step{step("start"), tagged})
			},
			"RUNNING", 1, 2, 1, 0,
		},
		"steps with events": {
			claimed, func(*situation) []byte { return commit },
			func(t *testing.T, s *situation) error {
				return s.ledger.CommitSteps(t.Context(), s.lease, []engine.Step{step("start"), emit(t)})
			},
			"RUNNING", 1, 2, 1, 1,
		},
		"success": {
			claimed, func(s *situation) []byte { return s.lease.ExecutionID[:] },
			func(t *testing.T, s *situation) error {
				return s.ledger.Succeed(t.Context(), s.lease, Ending{Steps: []engine.Step{tagged}})
			},
			"SUCCEEDED", 1, 1, 1, 0,
		},
		"success with events": {
			claimed, func(*situation) []byte { return commit },
			func(t *testing.T, s *situation) error {
				return s.ledger.Succeed(t.Context(), s.lease, Ending{Steps: []engine.Step{emit(t)}})
			},
			"SUCCEEDED", 1, 1, 1, 1,
		},
		"retry": {
			claimed, func(s *situation) []byte { return s.lease.ExecutionID[:] },
			func(t *testing.T, s *situation) error {
				_, err := s.ledger.Retry(t.Context(), s.lease, engine.CodeTimeout, time.Hour, Ending{Keep: s.d})
				return err
			},
			"RETRY", 1, 0, 0, 0,
		},
		"hand-back": {
			claimed, func(s *situation) []byte { return s.lease.ExecutionID[:] },
			func(t *testing.T, s *situation) error {
				return s.ledger.HandBack(t.Context(), s.lease, time.Hour, Ending{})
			},
			"RETRY", 0, 0, 0, 0,
		},
		"dead letter": {
			claimed, func(s *situation) []byte { return s.lease.ExecutionID[:] },
			func(t *testing.T, s *situation) error {
				return s.ledger.DeadLetter(t.Context(), s.lease, deadletter.New(engine.CodeHTTPStatus), Ending{})
			},
			"DEAD_LETTERED", 1, 0, 0, 0,
		},
	} {
		for when, after := range map[string]bool{"not committed": false, "committed": true} {
			t.Run(name+", "+when, func(t *testing.T) {
				database := testenv.Database(t)
				direct := testenv.Pool(t, database)
				proxy, pool := newCutter(t, database)
				outages := make(chan error, 100)
				s := &situation{direct: direct, d: newEvent(t, "acme"), ledger: newLedger(t, pool, func(c *Config) {
					c.Observe = func(err error) {
						if err != nil {
							outages <- err
						}
					}
				})}
				if statement.prepared != nothing {
					s.lease = mustClaim(t, s.ledger, s.d, Claimed).Lease
				}
				if statement.prepared == due {
					if err := s.ledger.HandBack(t.Context(), s.lease, 0, Ending{}); err != nil {
						t.Fatal(err)
					}
				}
				proxy.arm(statement.marker(s), after)
				if err := statement.run(t, s); err != nil {
					t.Fatalf("the lost answer became an error: %v", err)
				}
				equal(t, "cuts", proxy.cuts, 1)
				equal(t, "outages observed", len(outages), 1)
				equal(t, "rows", ofExecution[int](t, direct, "count(*)", "true"), 1)
				equal(t, "state", ofExecution[string](t, direct, "state", "true"), statement.state)
				equal(t, "attempt", ofExecution[int](t, direct, "attempt", "true"), statement.attempt)
				equal(t, "steps", rows(t, direct, "step_executions", "true"), statement.steps)
				equal(t, "tags", ofExecution[int](t, direct, "jsonb_array_length(status_tags)", "true"), statement.tags)
				equal(t, "events", rows(t, direct, "outbox_events", "true"), statement.events)
				letters := 0
				if statement.state == "DEAD_LETTERED" {
					letters = 1
				}
				equal(t, "dead letters", rows(t, direct, "dead_letters", "true"), letters)
			})
		}
	}
}

// An end whose answer was lost, and whose lease somebody took over before we looked, is lost: it is theirs now.
func TestLostAnswerThenTakenOver(t *testing.T) {
	database := testenv.Database(t)
	direct := testenv.Pool(t, database)
	proxy, pool := newCutter(t, database)
	ledger, other := newLedger(t, pool), newLedger(t, direct, owner("other"))
	d := newEvent(t, "acme")
	lease := mustClaim(t, ledger, d, Claimed).Lease
	proxy.answered = func() {
		exec(t, direct, "UPDATE relayops.pipeline_executions SET due_at = now()")
		mustClaimDue(t, other, 1, 1)
	}
	proxy.arm(lease.ExecutionID[:], true)
	if _, err := ledger.Retry(t.Context(), lease, engine.CodeTimeout, time.Hour, Ending{}); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("retry: %v, want ErrLeaseLost", err)
	}
	equal(t, "state", ofExecution[string](t, direct, "state", "true"), "RUNNING")
	equal(t, "token", ofExecution[int](t, direct, "fencing_token", "true"), 2)
}

// Guarantee 11: while the database is away the end of an attempt waits, and is recorded when it is back.
func TestEndWaitsForTheDatabase(t *testing.T) {
	server := testenv.Postgres(t)
	pool := testenv.Pool(t, server.URL())
	ledger := newLedger(t, pool, shortLease)
	d := newEvent(t, "acme")
	lease := mustClaim(t, ledger, d, Claimed).Lease
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Over a new connection it is sure that nothing was claimed, and the caller is told at once.
	fresh := newLedger(t, testenv.Pool(t, server.URL()))
	if _, err := fresh.Claim(t.Context(), request(newEvent(t, "acme"))); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a claim while the database is away: %v, want ErrUnavailable", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- ledger.Succeed(t.Context(), lease, Ending{Steps: []engine.Step{step("start")}}) }()
	select {
	case err := <-ended:
		t.Fatalf("the end did not wait: %v", err)
	case <-time.After(time.Second):
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatalf("the end after the outage: %v", err)
	}
	equal(t, "state", ofExecution[string](t, pool, "state", "event_id = $1", d.ID), "SUCCEEDED")
}

func TestEndGivesUpWithItsContext(t *testing.T) {
	server := testenv.Postgres(t)
	ledger := newLedger(t, testenv.Pool(t, server.URL()))
	lease := mustClaim(t, ledger, newEvent(t, "acme"), Claimed).Lease
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := ledger.Succeed(ctx, lease, Ending{}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("end: %v, want ErrUnavailable", err)
	}
}

func TestClassifyErrsOnTheSideOfLooking(t *testing.T) {
	for _, test := range []struct {
		err  error
		want answer
	}{
		{nil, answered},
		{ErrLeaseLost, answered},
		{errors.New("connection reset"), unknown},
		{context.DeadlineExceeded, unknown},
	} {
		equal(t, "class", classify(test.err), test.want)
	}
}

// A claim whose answer was lost, and whose lease ran out before we looked, is the same claim still: its attempt is not
// counted a second time, not even the last one, and its lease begins anew.
func TestLostClaimOutlivesItsLease(t *testing.T) {
	lastAttempt := func(c *Config) { c.MaxAttempts = 1 }
	for name, claim := range map[string]func(t *testing.T, ledger *Ledger, d *event.Delivery) Claim{
		"claim": func(t *testing.T, ledger *Ledger, d *event.Delivery) Claim {
			return mustClaim(t, ledger, d, Claimed)
		},
		"claim due": func(t *testing.T, ledger *Ledger, _ *event.Delivery) Claim {
			return mustClaimDue(t, ledger, 1, 1)[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			database := testenv.Database(t)
			direct := testenv.Pool(t, database)
			proxy, pool := newCutter(t, database)
			ledger, d := newLedger(t, pool, lastAttempt), newEvent(t, "acme")
			marker := d.ID[:]
			if name == "claim due" {
				if _, err := ledger.Recover(t.Context(), request(d)); err != nil {
					t.Fatal(err)
				}
				marker = []byte(testPipeline)
			}
			proxy.answered = func() {
				exec(t, direct, "UPDATE relayops.pipeline_executions SET lease_until = now() - interval '1 minute'")
			}
			proxy.arm(marker, true)
			found := claim(t, ledger, d)
			equal(t, "cuts", proxy.cuts, 1)
			equal(t, "verdict", found.Verdict, Claimed)
			equal(t, "attempt", ofExecution[int](t, direct, "attempt", "true"), 1)
			equal(t, "leased", ofExecution[bool](t, direct, "lease_until > now()", "true"), true)
			if err := ledger.Succeed(t.Context(), found.Lease, Ending{}); err != nil {
				t.Errorf("the lease of the claim is of no use: %v", err)
			}
		})
	}
}

package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/deadletter"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/execution"
	"github.com/relayops/relayops/internal/runspec"
)

func TestRetryDelayStaysInItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := runspec.BackOff{
			Initial:    runspec.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "initial")),
			Max:        runspec.Duration(rapid.Int64Range(1, int64(10*time.Hour)).Draw(t, "max")),
			Multiplier: rapid.Float64Range(0, 10).Draw(t, "multiplier"),
			Jitter:     rapid.Float64Range(0, 1).Draw(t, "jitter"),
		}
		attempt := rapid.IntRange(1, 1000).Draw(t, "attempt")
		random := rapid.Float64Range(0, 0.999).Draw(t, "random")
		asked := time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "asked"))
		delay := retryDelay(spec, attempt, random, asked)
		if delay < min(asked, maxWait) {
			t.Fatalf("%v is less than the %v that was asked for", delay, asked)
		}
		if delay > maxWait {
			t.Fatalf("%v is more than a day", delay)
		}
		if asked == 0 {
			longest := time.Duration(float64(spec.Max.Std())*(1+spec.Jitter)) + 1
			if delay > longest {
				t.Fatalf("%v is more than the most, %v with its jitter", delay, spec.Max)
			}
		}
	})
}

func TestRetryDelayGrows(t *testing.T) {
	spec := runspec.BackOff{Initial: runspec.Duration(time.Second), Max: runspec.Duration(10 * time.Second), Multiplier: 2, Jitter: 0.5}
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second} {
		equal(t, fmt.Sprintf("attempt %d", i+1), retryDelay(spec, i+1, 0.5, 0), want)
	}
	equal(t, "least", retryDelay(spec, 1, 0, 0), 500*time.Millisecond)
	equal(t, "asked", retryDelay(spec, 1, 0, time.Minute), time.Minute)
	equal(t, "after many attempts", retryDelay(spec, 5000, 0.5, 0), 10*time.Second)
	spec.Initial = 0
	equal(t, "none, after many attempts", retryDelay(spec, 5000, 0.5, 0), 0)
}

// Neither source is left without a slot for two rounds in a row while both have more than enough, and nothing is given
// out twice.
func TestDivideIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		free := rapid.IntRange(1, 100).Draw(t, "free")
		poll := rapid.Bool().Draw(t, "poll")
		d := demand{due: rapid.Bool().Draw(t, "due"), messages: rapid.Bool().Draw(t, "messages")}
		turn := rapid.Bool().Draw(t, "turn")
		due, messages := divide(free, poll, d, turn)
		if due < 0 || messages < 0 || due+messages != free {
			t.Fatalf("%d and %d of %d", due, messages, free)
		}
		if !poll && !d.due && due > 0 {
			t.Fatal("a look for due executions that is not due")
		}
		if d.due {
			due2, messages2 := divide(free, true, d, !turn)
			if due+due2 == 0 || messages+messages2 == 0 {
				t.Fatalf("starved: %d, %d then %d, %d", due, messages, due2, messages2)
			}
			if d.messages && free > 1 && (due < free/2 || messages < free/2) {
				t.Fatalf("not halved: %d and %d of %d", due, messages, free)
			}
		}
	})
}

func TestConclude(t *testing.T) {
	failed := func(class engine.Class, code engine.Code) engine.Result {
		return engine.Result{Outcome: engine.Failed, Failure: &engine.Failure{
			Class: class, Code: code, NodeID: "n", HTTPStatus: 500, RetryAfter: time.Minute,
		}}
	}
	dead := func(code engine.Code, node string, status int) verdict {
		return verdict{to: execution.DeadLettered, code: code, record: deadletter.Record{Code: code, NodeID: node, HTTPStatus: status}}
	}
	refused := &engine.Failure{Class: engine.ClassDeadLetter, Code: engine.CodeEventRefused, NodeID: "emit"}
	for name, test := range map[string]struct {
		result    engine.Result
		err       error
		exhausted bool
		want      verdict
	}{
		"success":     {result: engine.Result{Outcome: engine.Succeeded}, want: verdict{to: execution.Succeeded}},
		"handed back": {result: engine.Result{Outcome: engine.HandedBack}, want: verdict{to: execution.Retry, giveBack: true}},
		"retry": {
			result: failed(engine.ClassRetry, engine.CodeTimeout),
			want:   verdict{to: execution.Retry, code: engine.CodeTimeout, retryAfter: time.Minute},
		},
		"last attempt": {
			result: failed(engine.ClassRetry, engine.CodeTimeout), exhausted: true,
			want: dead(engine.CodeMaxAttemptsExceeded, "n", 500),
		},
		"permanent": {result: failed(engine.ClassDeadLetter, engine.CodeHTTPStatus), want: dead(engine.CodeHTTPStatus, "n", 500)},
		"permanent, last attempt": {
			result: failed(engine.ClassDeadLetter, engine.CodeHTTPStatus), exhausted: true,
			want: dead(engine.CodeHTTPStatus, "n", 500),
		},
		"text in place of a code": {
			result: failed(engine.ClassDeadLetter, "password=hunter2"), want: dead(engine.CodePermanentError, "n", 500),
		},
		"text in place of a code, to retry": {
			result: failed(engine.ClassRetry, "password=hunter2"),
			want:   verdict{to: execution.Retry, code: engine.CodeTransientError, retryAfter: time.Minute},
		},
		"cancel": {
			result: failed(engine.ClassCancel, engine.CodeHTTPStatus), exhausted: true,
			want: verdict{to: execution.Cancelled, code: engine.CodeHTTPStatus},
		},
		"lease lost":       {err: fmt.Errorf("x: %w", errLeaseTaken), want: verdict{}},
		"pipeline timeout": {err: fmt.Errorf("x: %w", errPipelineTimeout), want: dead(engine.CodePipelineTimeout, "", 0)},
		"broker away":      {err: fmt.Errorf("x: %w", errBrokerAway), want: verdict{to: execution.Retry, giveBack: true, delay: awayDelay}},
		"stopping":         {err: fmt.Errorf("x: %w", errStopping), want: verdict{to: execution.Retry, giveBack: true}},
		"database away":    {err: execution.ErrUnavailable, want: verdict{to: execution.Retry, giveBack: true}},
		"unknown error":    {err: errors.New("x"), exhausted: true, want: verdict{to: execution.Retry, giveBack: true}},
		"refused record":   {err: fmt.Errorf("record: %w", refused), want: dead(engine.CodeEventRefused, "emit", 0)},
	} {
		equal(t, name, conclude(test.result, test.err, test.exhausted), test.want)
	}
}

func TestRelevance(t *testing.T) {
	spec := runspec.Worker{PipelineKey: "a/b/c", Subscription: runspec.Subscription{
		EventTypes: []string{"OrderConfirmed"}, Orgs: []string{"acme"},
	}}
	subscription := execution.Subscription{FromPosition: 10, UntilPosition: 20}
	for name, test := range map[string]struct {
		org, eventType, pipeline string
		position                 int64
		want                     relevance
	}{
		"inside":                      {"acme", "OrderConfirmed", "", 10, relevant},
		"before":                      {"acme", "OrderConfirmed", "", 9, outsideSubscription},
		"last":                        {"acme", "OrderConfirmed", "", 19, relevant},
		"after":                       {"acme", "OrderConfirmed", "", 20, outsideSubscription},
		"no position":                 {"acme", "OrderConfirmed", "", 0, relevant},
		"other org":                   {"globex", "OrderConfirmed", "", 10, otherOrg},
		"other type":                  {"acme", "OrderChanged", "", 10, otherType},
		"reprocess for us":            {"acme", "OrderConfirmed", "a/b/c", 1, relevant},
		"reprocess for another":       {"acme", "OrderConfirmed", "a/b/d", 10, otherPipeline},
		"reprocess for us, other org": {"globex", "OrderConfirmed", "a/b/c", 1, otherOrg},
	} {
		d := &event.Delivery{PipelineKey: test.pipeline, Position: test.position}
		d.OrgID, d.EventType = test.org, test.eventType
		equal(t, name, relevanceOf(&spec, subscription, d), test.want)
	}
	spec.Subscription.Orgs = nil
	d := &event.Delivery{Position: 10}
	d.OrgID, d.EventType = "globex", "OrderConfirmed"
	equal(t, "all orgs", relevanceOf(&spec, subscription, d), relevant)
}

func TestSettlements(t *testing.T) {
	for verdict, want := range map[execution.Verdict]settlement{
		execution.AlreadyTerminal: {how: ack},
		execution.WaitingForRetry: {how: ack},
		execution.DeadlinePassed:  {how: ack},
		execution.LeasedByOther:   {how: nak, delay: 20 * time.Second},
		execution.PayloadConflict: {how: term},
	} {
		s, conflict := settleUnclaimed(&execution.Claim{Verdict: verdict, LeaseLeft: 20 * time.Second})
		equal(t, string(verdict), s, want)
		equal(t, string(verdict)+" is a conflict", conflict, verdict == execution.PayloadConflict)
	}
	late, _ := settleUnclaimed(&execution.Claim{Verdict: execution.LeasedByOther, LeaseLeft: time.Hour})
	equal(t, "long lease", late.delay, longestNak)
	for state, want := range map[execution.State]settling{
		"": leave, execution.Succeeded: ack, execution.Retry: ack, execution.Cancelled: ack, execution.DeadLettered: term,
	} {
		equal(t, "settlement of "+string(state), settleEnded(state).how, want)
	}
}

func TestStopwatchStandsStillWhilePaused(t *testing.T) {
	clock := time.Unix(0, 0)
	now := func() time.Time { return clock }
	s := startStopwatch(now, time.Second, 0, nil)
	clock = clock.Add(2 * time.Second)
	s.pause()
	s.pause()
	clock = clock.Add(time.Hour)
	s.resume()
	clock = clock.Add(time.Hour)
	equal(t, "paused twice", s.elapsed(), 3*time.Second)
	s.resume()
	clock = clock.Add(time.Second)
	equal(t, "going on", s.elapsed(), 4*time.Second)
	s.stop()
	clock = clock.Add(time.Hour)
	equal(t, "stopped", s.elapsed(), 4*time.Second)
}

func TestStopwatchExpires(t *testing.T) {
	expired := make(chan struct{})
	s := startStopwatch(time.Now, 50*time.Millisecond, 100*time.Millisecond, func() { close(expired) })
	defer s.stop()
	select {
	case <-expired:
	case <-time.After(5 * time.Second):
		t.Fatal("never expired")
	}
	if s.elapsed() < 100*time.Millisecond {
		t.Errorf("expired after %v", s.elapsed())
	}
}

func TestSlots(t *testing.T) {
	s := newSlots(3)
	equal(t, "taken", s.takeAll(t.Context()), 3)
	ended, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	equal(t, "taken when none is free", s.takeAll(ended), 0)
	s.release(1)
	s.release(1)
	equal(t, "taken again", s.takeAll(t.Context()), 2)
}

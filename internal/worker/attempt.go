package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/connect"
	"github.com/relayops/relayops/internal/deadletter"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/execution"
)

// errLeaseTaken is the cause of a run's end when its lease is lost.
var errLeaseTaken = fmt.Errorf("taken over: %w", execution.ErrLeaseLost)

// parallelism is how many steps of one execution run at once.
const parallelism = 4

// attempt runs a claimed execution and records its end: the state that it has then, or none when that is not recorded.
// message is the event as it was delivered; nil for an execution that was claimed because it was due.
func (w *Worker) attempt(ctx context.Context, claim *execution.Claim, message *event.Delivery, log *slog.Logger,
) execution.State {
	w.metrics.inFlight.Inc()
	defer w.metrics.inFlight.Dec()
	log = log.With("execution", claim.Lease.ExecutionID, "attempt", claim.Lease.Attempt)
	// The run is cut off when the grace period is nearly over; its end may be recorded until it is over.
	runCtx, cancel := context.WithCancelCause(w.running)
	defer cancel(nil)
	r := &running{lease: claim.Lease, cancel: cancel}
	r.watch = startStopwatch(w.now, claim.Executed, w.spec.PipelineTimeout.Std(), func() { cancel(errPipelineTimeout) })
	defer r.watch.stop()
	w.hand.takeAttempt(r)
	defer w.hand.dropAttempt(r)

	if claim.Verdict == execution.AttemptsExhausted {
		return w.endExhausted(ctx, claim, message, log)
	}
	w.metrics.began(claim)
	in, result, err := w.run(runCtx, claim, message, r) //nolint:contextcheck // It outlives ctx: see Run.
	r.watch.stop()
	exhausted := claim.Lease.Attempt >= w.spec.MaxAttempts
	end := &attemptEnd{claim: claim, log: log, verdict: conclude(result, err, exhausted)}
	end.ending = execution.Ending{Steps: result.Pending, Executed: r.watch.elapsed()}
	if !in.stored && in.event != nil {
		end.ending.Keep = in.event
	}
	w.logFailure(log, result, err)
	return w.record(end)
}

// endExhausted ends an execution whose attempts crashed one after the other: nothing of it runs any more. Its event is
// kept with the dead letter. While it cannot be looked up the lease is left to run out, and the next one tries.
func (w *Worker) endExhausted(ctx context.Context, claim *execution.Claim, message *event.Delivery, log *slog.Logger,
) execution.State {
	in := delivered{event: message}
	if message == nil {
		found, err := w.fetchEvent(ctx, claim)
		var gone *engine.Failure
		if err != nil && !errors.As(err, &gone) {
			log.Debug("event of an exhausted execution not read", "error", err)
			return ""
		}
		in = found
	}
	end := &attemptEnd{claim: claim, log: log, verdict: deadLetter(deadletter.New(engine.CodeMaxAttemptsExceeded))}
	end.ending.Executed = claim.Executed
	if !in.stored && in.event != nil {
		end.ending.Keep = in.event
	}
	return w.record(end)
}

// run gets what the attempt needs, and runs it.
func (w *Worker) run(ctx context.Context, claim *execution.Claim, message *event.Delivery, r *running,
) (in delivered, result engine.Result, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			result = engine.Result{Outcome: engine.Failed}
			result.Failure = engine.Permanent(engine.CodeNodePanicked, fmt.Errorf("panic: %v", recovered))
			err = nil
		}
	}()
	if message != nil {
		in, err = w.fetchPayload(ctx, message)
	} else {
		in, err = w.fetchEvent(ctx, claim)
	}
	if err != nil {
		return in, result, err
	}
	graph, err := w.revisions.get(ctx, claim.Revision)
	if errors.Is(err, errRevisionUnusable) {
		return in, result, engine.Permanent(engine.CodeRevisionMissing, err)
	}
	if err != nil {
		return in, result, err
	}
	services := w.services
	services.Publisher = &publisher{js: w.js, away: func() { r.cancel(errBrokerAway) }}
	result, err = graph.Run(ctx, engine.Execution{
		ID: claim.Lease.ExecutionID, PipelineKey: w.spec.PipelineKey, Event: in.event.Envelope,
		OperationVersion: claim.OperationVersion, Attempt: claim.Lease.Attempt, MaxAttempts: w.spec.MaxAttempts,
		Completed: claim.Completed,
	}, engine.Runtime{
		Journal: &journal{worker: w, running: r}, Now: w.now, StepTimeout: w.spec.StepTimeout.Std(),
		Parallelism: parallelism, Draining: w.draining, Services: services,
	})
	return in, result, err
}

// journal records an attempt's steps. While it waits for the database the attempt's time stands still.
type journal struct {
	worker  *Worker
	running *running
}

// Commit implements engine.Journal. Steps whose record is refused become the failure of the node that emitted what was
// refused.
func (j *journal) Commit(ctx context.Context, steps []engine.Step) error {
	j.running.watch.pause()
	defer j.running.watch.resume()
	err := j.worker.ledger.CommitSteps(ctx, j.running.lease, steps)
	if refusedRecord(err) {
		return refusal(steps, err)
	}
	if err == nil {
		j.worker.recorded(steps)
	}
	return err
}

// recorded is called after a commit of steps: it counts them, and has a relay look at once for what they emitted, so
// that a chain of pipelines does not wait for a poll at each link.
func (w *Worker) recorded(steps []engine.Step) {
	w.metrics.recorded(steps)
	if slices.ContainsFunc(steps, func(s engine.Step) bool { return len(s.Events) > 0 }) {
		w.pinger.Ping()
	}
}

// refusedRecord reports whether the database answered, and refused the record for what it holds.
func refusedRecord(err error) bool {
	return errors.Is(err, outbox.ErrPayloadConflict) || errors.Is(err, event.ErrInvalid) ||
		errors.Is(err, execution.ErrRefused)
}

// refusal is the permanent failure of an attempt whose record was refused.
func refusal(steps []engine.Step, err error) *engine.Failure {
	failure := engine.Permanent(engine.CodePermanentError, err)
	if !errors.Is(err, execution.ErrRefused) {
		failure.Code = engine.CodeEventRefused
	}
	for i := range steps {
		if failure.NodeID == "" || len(steps[i].Events) > 0 {
			failure.NodeID = steps[i].NodeID
		}
	}
	return failure
}

// attemptEnd is the end of an attempt that is to be recorded.
type attemptEnd struct {
	claim   *execution.Claim
	log     *slog.Logger
	verdict verdict
	ending  execution.Ending
}

// record writes the end of an attempt. What the database refuses for its content is left out, step by step, until
// what remains is only ours.
func (w *Worker) record(end *attemptEnd) execution.State {
	if end.verdict.to == "" {
		end.log.Warn("lease lost: another worker has the execution")
		w.metrics.ended(outcomeLeaseLost, end.ending.Executed-end.claim.Executed)
		return ""
	}
	state, err := w.transition(end)
	if refusedRecord(err) && len(end.ending.Steps) > 0 {
		failure := refusal(end.ending.Steps, err)
		end.log.Debug("steps refused", "error", err)
		end.ending.Steps = nil
		end.verdict = deadLetter(deadletter.FromFailure(failure, false))
		state, err = w.transition(end)
	}
	if errors.Is(err, execution.ErrRefused) && end.ending.Keep != nil {
		end.log.Warn("the event cannot be stored as jsonb: it can be run again only as long as the stream has it")
		end.ending.Keep = nil
		state, err = w.transition(end)
	}
	took := end.ending.Executed - end.claim.Executed
	switch {
	case errors.Is(err, execution.ErrLeaseLost):
		end.log.Warn("lease lost: another worker has the execution")
		w.metrics.ended(outcomeLeaseLost, took)
		return ""
	case err != nil:
		// The text of a refusal may quote a value of the event.
		end.log.Warn("the end of an attempt is not recorded: it will be taken over",
			"refused", errors.Is(err, execution.ErrRefused))
		end.log.Debug("the end of an attempt is not recorded", "error", connect.Explain(err))
		return ""
	}
	w.report(end, state)
	return state
}

func (w *Worker) transition(end *attemptEnd) (execution.State, error) {
	v, lease := end.verdict, end.claim.Lease
	ctx := w.recording
	switch {
	case v.to == execution.Succeeded:
		return v.to, w.ledger.Succeed(ctx, lease, end.ending)
	case v.to == execution.DeadLettered:
		return v.to, w.ledger.DeadLetter(ctx, lease, v.record, end.ending)
	case v.to == execution.Cancelled:
		return v.to, w.ledger.Cancel(ctx, lease, v.code, end.ending)
	case v.giveBack:
		return v.to, w.ledger.HandBack(ctx, lease, v.delay, end.ending)
	default:
		delay := retryDelay(w.spec.BackOff, lease.Attempt, w.random(), v.retryAfter)
		return w.ledger.Retry(ctx, lease, v.code, delay, end.ending)
	}
}

// report tells logs and metrics of a recorded end: ids and codes, nothing of the event.
func (w *Worker) report(end *attemptEnd, state execution.State) {
	w.recorded(end.ending.Steps)
	outcome := outcomes[state]
	switch {
	case end.verdict.giveBack:
		outcome = outcomeHandedBack
		end.log.Info("handed back")
	case state == execution.Succeeded:
		end.log.Debug("succeeded")
	case state == execution.DeadLettered:
		w.metrics.letters.WithLabelValues(string(end.verdict.record.Code)).Inc()
		end.log.Warn("dead letter", "code", end.verdict.record.Code, "node", end.verdict.record.NodeID,
			"httpStatus", end.verdict.record.HTTPStatus)
	case state == execution.Cancelled:
		end.log.Info("cancelled", "code", end.verdict.code)
	default:
		end.log.Info("retry", "code", end.verdict.code)
	}
	w.metrics.ended(outcome, end.ending.Executed-end.claim.Executed)
}

// logFailure is the only place where a failure's own text is shown: in debug logs.
func (w *Worker) logFailure(log *slog.Logger, result engine.Result, err error) {
	switch {
	case err != nil:
		log.Debug("attempt cut off", "error", err)
	case result.Failure != nil:
		log.Debug("attempt failed", "error", result.Failure)
	}
}

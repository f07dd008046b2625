package execution

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/deadletter"
	"github.com/relayops/relayops/internal/engine"
)

// Ending is what the transaction that ends an attempt records beside the state.
type Ending struct {
	// Steps are those that are not in the journal yet; with their tags and events.
	Steps []engine.Step
	// Executed is the time that the execution has spent executing, in all its attempts.
	Executed time.Duration
	// Keep is the event. An end after which the execution may run again (Retry, HandBack, DeadLetter) stores it for
	// [Ledger.Event], unless the outbox has it. Nil: it is known to be stored.
	Keep *event.Delivery
}

// transition is one way to end an attempt.
type transition struct {
	to           State
	code         engine.Code
	delay        time.Duration
	giveBack     bool
	overDeadline bool
	dead         *deadletter.Record
	ending       Ending
}

const (
	// cancelsSQL: the deadline of the row e has passed, and this end of an attempt would have another one follow.
	cancelsSQL = `(@over_deadline::boolean AND coalesce(e.deadline_at <= now(), false))`

	// runningSQL says that a row which is found by its key is RUNNING. A plain comparison would let the planner walk
	// through one of the partial indexes on RUNNING rows instead, which is every execution in work.
	runningSQL = `coalesce(state, '') = 'RUNNING'`

	// heldSQL moves the row, if the lease is still ours. Until the transaction ends the row is locked: who takes the
	// lease over waits, and sees the result.
	heldSQL = `
WITH held AS (
  UPDATE relayops.pipeline_executions e SET
    state = CASE WHEN ` + cancelsSQL + ` THEN 'CANCELLED' ELSE @state END,
    code = CASE WHEN ` + cancelsSQL + ` THEN 'deadline_exceeded' ELSE @code END,
    attempt = e.attempt - CASE WHEN @give_back::boolean AND e.attempt > 0 THEN 1 ELSE 0 END,
    lease_until = NULL,
    due_at = CASE WHEN @state = 'RETRY' AND NOT ` + cancelsSQL + ` THEN now() + @delay::interval END,
    finished_at = CASE WHEN @state <> 'RETRY' OR ` + cancelsSQL + ` THEN clock_timestamp() END,
    executed_ms = @executed_ms::bigint,
    status_tags = e.status_tags || @tags::jsonb
  WHERE e.execution_id = @execution_id::uuid AND e.fencing_token = @token::bigint AND ` + runningSQL + `
  RETURNING e.*
), ` + stepsSQL

	deadSQL = `, dead AS (
  INSERT INTO relayops.dead_letters (dead_letter_id, org_id, pipeline_key, event_id, operation_version, execution_id,
    event_type, code, node_id, http_status, attempt, stream, stream_seq)
  SELECT @dead_letter_id::uuid, org_id, pipeline_key, event_id, operation_version, execution_id,
    event_type, @dead_code, @dead_node, @dead_status::integer, @attempt::integer, stream, stream_seq
  FROM held
  ON CONFLICT ON CONSTRAINT dead_letters_execution DO NOTHING
)`

	stateSQL = `
SELECT state FROM held`

	endedSQL = `SELECT state FROM relayops.pipeline_executions
WHERE execution_id = @execution_id::uuid AND fencing_token = @token::bigint AND state IN (@state, @otherwise)`
)

// Succeed ends the execution. Its errors, and those of the other ends: [ErrLeaseLost]; [ErrRefused] for a step that
// the database cannot hold; what the [EventWriter] refuses an event with; [ErrUnavailable] when ctx ended before the
// database had answered.
func (l *Ledger) Succeed(ctx context.Context, lease Lease, ending Ending) error {
	_, err := l.end(ctx, lease, transition{to: Succeeded, ending: ending})
	return err
}

// Retry ends the attempt; the execution is due again after delay. When its deadline has passed by now it is cancelled
// instead: the state says which.
func (l *Ledger) Retry(ctx context.Context, lease Lease, code engine.Code, delay time.Duration, ending Ending,
) (State, error) {
	return l.end(ctx, lease, transition{to: Retry, code: code, delay: delay, overDeadline: true, ending: ending})
}

// DeadLetter ends the execution and writes its dead letter.
func (l *Ledger) DeadLetter(ctx context.Context, lease Lease, record deadletter.Record, ending Ending) error {
	_, err := l.end(ctx, lease, transition{to: DeadLettered, code: record.Code, dead: &record, ending: ending})
	return err
}

// Cancel ends the execution for good.
func (l *Ledger) Cancel(ctx context.Context, lease Lease, code engine.Code, ending Ending) error {
	_, err := l.end(ctx, lease, transition{to: Cancelled, code: code, ending: ending})
	return err
}

// HandBack gives the attempt back: it is not counted, and the execution is due after delay to resume where it stopped.
func (l *Ledger) HandBack(ctx context.Context, lease Lease, delay time.Duration, ending Ending) error {
	_, err := l.end(ctx, lease, transition{to: Retry, delay: delay, giveBack: true, ending: ending})
	return err
}

func (l *Ledger) end(ctx context.Context, lease Lease, t transition) (state State, err error) {
	statement, arguments, err := l.endStatement(lease, t)
	if err != nil {
		return "", err
	}
	events := eventsOf(t.ending.Steps)
	what := fmt.Sprintf("end attempt %d of execution %s as %s", lease.Attempt, lease.ExecutionID, t.to)
	err = l.settle(ctx, what, false, func(ctx context.Context, again bool) (err error) {
		state, err = l.endOnce(ctx, statement, arguments, events)
		if err != nil || state != "" {
			return err
		}
		if again {
			// No row was held. Under our token nobody else ends an attempt: if it ended so, a former try did it.
			if state, err = l.endedBefore(ctx, arguments); err != nil || state != "" {
				return err
			}
		}
		return ErrLeaseLost
	})
	return state, err
}

func (l *Ledger) endStatement(lease Lease, t transition) (string, namedArgs, error) {
	arguments, err := stepArguments(t.ending.Steps)
	if err != nil {
		return "", nil, err
	}
	addLease(arguments, lease)
	arguments["state"], arguments["otherwise"] = string(t.to), string(t.to)
	if t.overDeadline {
		arguments["otherwise"] = string(Cancelled)
	}
	arguments["code"], arguments["delay"] = string(t.code), t.delay
	arguments["give_back"], arguments["over_deadline"] = t.giveBack, t.overDeadline
	arguments["executed_ms"] = t.ending.Executed.Milliseconds()
	statement := heldSQL
	if t.dead != nil {
		id, err := uuid.NewV7()
		if err != nil {
			return "", nil, fmt.Errorf("make a dead letter's id: %w", err)
		}
		statement += deadSQL
		arguments["dead_letter_id"], arguments["dead_code"] = id, string(t.dead.Code)
		arguments["dead_node"], arguments["dead_status"] = t.dead.NodeID, t.dead.HTTPStatus
	}
	if t.keeps() {
		statement += l.keeps
		if err := addKept(arguments, t.ending.Keep); err != nil {
			return "", nil, err
		}
	}
	return statement + stateSQL, arguments, nil
}

// keeps reports whether the event is stored with this end: after the others the execution never runs again.
func (t *transition) keeps() bool {
	return t.ending.Keep != nil && t.ending.Keep.PayloadRef == "" && (t.to == Retry || t.to == DeadLettered)
}

// endOnce gives the state that the row has now, or none where the lease is not ours.
func (l *Ledger) endOnce(ctx context.Context, statement string, arguments namedArgs, events []event.Envelope,
) (state State, err error) {
	if len(events) == 0 {
		return oneState(ctx, l.pool, statement, arguments)
	}
	err = l.inTransaction(ctx, func(tx pgx.Tx) error {
		if state, err = oneState(ctx, tx, statement, arguments); err != nil || state == "" {
			return err
		}
		return l.config.Events.Write(ctx, tx, events...)
	})
	return state, err
}

func (l *Ledger) endedBefore(ctx context.Context, arguments namedArgs) (State, error) {
	return oneState(ctx, l.pool, endedSQL, arguments)
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error)
}

func oneState(ctx context.Context, db querier, statement string, arguments namedArgs) (State, error) {
	rows, err := db.Query(ctx, statement, arguments)
	if err != nil {
		return "", err
	}
	states, err := pgx.CollectRows(rows, pgx.RowTo[State])
	if err != nil || len(states) == 0 {
		return "", err
	}
	return states[0], nil
}

func addLease(arguments namedArgs, lease Lease) {
	arguments["execution_id"], arguments["token"], arguments["attempt"] = lease.ExecutionID, lease.Token, lease.Attempt
}

package execution

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/engine"
)

const (
	commitSQL = `
WITH held AS (
  UPDATE relayops.pipeline_executions SET status_tags = status_tags || @tags::jsonb
  WHERE execution_id = @execution_id::uuid AND fencing_token = @token::bigint AND ` + runningSQL + `
  RETURNING execution_id, state
), ` + stepsSQL + stateSQL

	lockSQL = `SELECT state FROM relayops.pipeline_executions
WHERE execution_id = @execution_id::uuid AND fencing_token = @token::bigint AND ` + runningSQL + ` FOR UPDATE`

	recordedSQL = `SELECT node_id FROM relayops.step_executions
WHERE execution_id = @execution_id::uuid AND fencing_token = @token::bigint AND attempt = @attempt::integer`
)

// CommitSteps records steps, their tags and their events in one transaction, and no other part of the execution. Its
// errors are those of [Ledger.Succeed].
func (l *Ledger) CommitSteps(ctx context.Context, lease Lease, steps []engine.Step) error {
	arguments, err := stepArguments(steps)
	if err != nil {
		return err
	}
	addLease(arguments, lease)
	events := eventsOf(steps)
	what := fmt.Sprintf("record %d steps of execution %s", len(steps), lease.ExecutionID)
	return l.settle(ctx, what, false, func(ctx context.Context, again bool) error {
		if !again && len(events) == 0 {
			return held(oneState(ctx, l.pool, commitSQL, arguments))
		}
		return l.inTransaction(ctx, func(tx pgx.Tx) error {
			if again {
				recorded, err := recordedBefore(ctx, tx, arguments, nodesOf(steps))
				if err != nil || recorded {
					return err
				}
			}
			if err := held(oneState(ctx, tx, commitSQL, arguments)); err != nil {
				return err
			}
			return l.writeEvents(ctx, tx, events)
		})
	})
}

func (l *Ledger) writeEvents(ctx context.Context, tx pgx.Tx, events []event.Envelope) error {
	if len(events) == 0 {
		return nil
	}
	return l.config.Events.Write(ctx, tx, events...)
}

// recordedBefore takes the row's lock, which waits for a former try that is still under way, and looks what it left.
func recordedBefore(ctx context.Context, tx pgx.Tx, arguments namedArgs, nodes []string) (bool, error) {
	if err := held(oneState(ctx, tx, lockSQL, arguments)); err != nil {
		return false, err
	}
	rows, err := tx.Query(ctx, recordedSQL, arguments)
	if err != nil {
		return false, err
	}
	recorded, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return false, err
	}
	for _, node := range nodes {
		if !slices.Contains(recorded, node) {
			return false, nil
		}
	}
	return true, nil
}

func held(state State, err error) error {
	if err == nil && state == "" {
		return ErrLeaseLost
	}
	return err
}

const renewSQL = `
UPDATE relayops.pipeline_executions e
SET lease_until = now() + @lease::interval, executed_ms = greatest(e.executed_ms, r.executed_ms)
FROM unnest(@ids::uuid[], @tokens::bigint[], @executed::bigint[]) AS r (execution_id, token, executed_ms)
WHERE e.execution_id = r.execution_id AND e.fencing_token = r.token AND ` + runningSQL + `
RETURNING e.execution_id`

// Renewal asks for a lease to be prolonged, and says how long the execution has been executing in all its attempts.
type Renewal struct {
	Lease    Lease
	Executed time.Duration
}

// Renew prolongs leases from now on, all in one statement, and gives those that are lost. Its error is
// [ErrUnavailable]; the leases may be prolonged then or not.
func (l *Ledger) Renew(ctx context.Context, renewals []Renewal) (lost []Lease, err error) {
	ids, tokens := make([][16]byte, len(renewals)), make([]int64, len(renewals))
	executed := make([]int64, len(renewals))
	for i, r := range renewals {
		ids[i], tokens[i], executed[i] = r.Lease.ExecutionID, r.Lease.Token, r.Executed.Milliseconds()
	}
	arguments := namedArgs{"lease": l.config.Lease, "ids": ids, "tokens": tokens, "executed": executed}
	var renewed [][16]byte
	err = l.settle(ctx, "renew leases", true, func(ctx context.Context, _ bool) error {
		rows, err := l.pool.Query(ctx, renewSQL, arguments)
		if err != nil {
			return err
		}
		renewed, err = pgx.CollectRows(rows, pgx.RowTo[[16]byte])
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, r := range renewals {
		if !slices.Contains(renewed, [16]byte(r.Lease.ExecutionID)) {
			lost = append(lost, r.Lease)
		}
	}
	return lost, nil
}

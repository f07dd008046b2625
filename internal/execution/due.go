package execution

import (
	"context"
	"hash/fnv"

	"github.com/jackc/pgx/v5"
)

const (
	// claimDueSQL takes leases that ran out first: there are never more of them than workers had slots, and their
	// events have waited longest. The advisory lock is held until the statement's end, for ownedSQL to wait on.
	claimDueSQL = `
WITH under AS MATERIALIZED (
  SELECT pg_advisory_xact_lock(@lock::bigint) AS lock
), abandoned AS MATERIALIZED (
  SELECT execution_id FROM relayops.pipeline_executions
  WHERE pipeline_key = @pipeline AND state = 'RUNNING' AND lease_until <= now() AND @take_over::boolean
  ORDER BY lease_until LIMIT @most FOR UPDATE SKIP LOCKED
), due AS MATERIALIZED (
  SELECT execution_id FROM relayops.pipeline_executions
  WHERE pipeline_key = @pipeline AND state = 'RETRY' AND due_at <= now()
  ORDER BY due_at LIMIT @most FOR UPDATE SKIP LOCKED
), picked AS (
  SELECT execution_id FROM abandoned UNION ALL SELECT execution_id FROM due LIMIT @most
), claimed AS (
  UPDATE relayops.pipeline_executions e SET` + leaseSQL + `
  FROM picked, under WHERE e.execution_id = picked.execution_id
  RETURNING e.*
)
` + rowSQL + `FROM claimed r`

	// ownedSQL begins the leases anew: the wait for the lost answer may have used them up. What the claim cancelled is
	// over, and not looked for: only RUNNING rows have an index on their owner.
	ownedSQL = `
WITH owned AS (
  UPDATE relayops.pipeline_executions SET lease_until = now() + @lease::interval
  WHERE pipeline_key = @pipeline AND lease_owner = @owner AND state = 'RUNNING'
  RETURNING *
)
` + rowSQL + `FROM owned r`
)

// ClaimDue takes the leases of at most most executions that are due: RETRY rows, and with takeOver RUNNING ones whose
// lease ran out. The verdicts are Claimed, AttemptsExhausted and DeadlinePassed. Rows that another worker is claiming
// are passed over. Its errors are those of [Ledger.Claim].
func (l *Ledger) ClaimDue(ctx context.Context, most int, takeOver bool) ([]Claim, error) {
	owner := l.names.next()
	arguments := namedArgs{
		"lock": lockOf(owner), "pipeline": l.config.PipelineKey, "take_over": takeOver, "most": most,
		"owner": owner, "lease": l.config.Lease, "max_attempts": l.config.MaxAttempts,
	}
	var claims []Claim
	err := l.settle(ctx, "claim due executions", true, func(ctx context.Context, again bool) error {
		found, err := l.claimDueOnce(ctx, arguments, again)
		claims = found
		return err
	})
	return claims, err
}

func (l *Ledger) claimDueOnce(ctx context.Context, arguments namedArgs, again bool) ([]Claim, error) {
	if again {
		owned, err := l.ownedBy(ctx, arguments)
		if err != nil || len(owned) > 0 {
			return leases(owned), err
		}
	}
	rows, err := l.pool.Query(ctx, claimDueSQL, arguments)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, scanRow)
	return leases(found), err
}

// ownedBy reads what a claim of ours took whose answer was lost. The advisory lock waits for a statement that is still
// running.
func (l *Ledger) ownedBy(ctx context.Context, arguments namedArgs) (owned []row, err error) {
	err = l.inTransaction(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(@lock::bigint)", arguments); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, ownedSQL, arguments)
		if err != nil {
			return err
		}
		owned, err = pgx.CollectRows(rows, scanRow)
		return err
	})
	return owned, err
}

func leases(rows []row) []Claim {
	claims := make([]Claim, len(rows))
	for i := range rows {
		claims[i] = rows[i].claim
		claims[i].Verdict = rows[i].leased()
	}
	return claims
}

// lockOf is the advisory lock of one claim. Two names that share a hash only wait for each other.
func lockOf(owner string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(owner)) // A hash never fails.
	return int64(h.Sum64())       // Any 64 bits will do.
}

// countLimit is where CountDue stops: beyond it, a count costs more than it tells.
const countLimit = 10_000

// CountDue counts the executions that are due and not claimed, up to 10000. Its errors are those of [Ledger.Claim].
func (l *Ledger) CountDue(ctx context.Context) (count int, err error) {
	const sql = `SELECT count(*) FROM (SELECT FROM relayops.pipeline_executions
WHERE pipeline_key = @pipeline AND state = 'RETRY' AND due_at <= now() LIMIT @most) d`
	arguments := namedArgs{"pipeline": l.config.PipelineKey, "most": countLimit}
	err = l.settle(ctx, "count due executions", true, func(ctx context.Context, _ bool) error {
		return l.pool.QueryRow(ctx, sql, arguments).Scan(&count)
	})
	return count, err
}

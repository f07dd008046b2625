package execution

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/engine"
)

// Verdict is what a claim found.
type Verdict string

// The verdicts.
const (
	// Claimed: the caller holds the lease, and the attempt is counted.
	Claimed Verdict = "claimed"
	// AttemptsExhausted: the caller holds the lease, no attempt is counted; it writes the dead letter and runs nothing.
	AttemptsExhausted Verdict = "attempts_exhausted"
	// DeadlinePassed: the deadline has passed, and the row is CANCELLED now.
	DeadlinePassed Verdict = "deadline_passed"
	// AlreadyTerminal: the execution is over.
	AlreadyTerminal Verdict = "already_terminal"
	// WaitingForRetry: the row waits until it is due; the ledger runs it then.
	WaitingForRetry Verdict = "waiting_for_retry"
	// LeasedByOther: somebody holds the lease, for LeaseLeft longer.
	LeasedByOther Verdict = "leased_by_other"
	// PayloadConflict: the key was recorded with another payload. The row is left as it is.
	PayloadConflict Verdict = "payload_conflict"
)

// ErrNoOrg says: without an organisation there is no key, and nothing is claimed.
var ErrNoOrg = errors.New("an event without an organisation has no key")

// Request asks for the execution of one delivered event.
type Request struct {
	Delivery *event.Delivery
	// Revision of the pipeline that an execution which begins now has.
	Revision string
	// Stream and StreamSeq are where the message is.
	Stream    string
	StreamSeq uint64
	// TakeOver allows to take a lease that ran out. Without it such a lease counts as held.
	TakeOver bool
}

// Claim is what a claim found. Lease is set for Claimed and AttemptsExhausted.
type Claim struct {
	Verdict Verdict
	Lease   Lease
	// Key.
	OrgID            string
	EventID          uuid.UUID
	OperationVersion int32
	EventType        string
	PayloadSHA256    [32]byte
	// Stream and StreamSeq are where the message was when the row was made; empty and 0 where that is not known.
	Stream    string
	StreamSeq uint64
	State     State
	Revision  string
	// Executed is the time that former attempts spent executing.
	Executed time.Duration
	// Tags and Completed are what former attempts recorded; see engine.Execution.Completed.
	Tags      []engine.StatusTag
	Completed []engine.Step
	// OccurredAt is the event's time; ClaimedAt is the database's time of the claim.
	OccurredAt time.Time
	ClaimedAt  time.Time
	// LeaseLeft is for LeasedByOther how long the lease still is; 0 or less for one that ran out.
	LeaseLeft time.Duration
}

// First reports whether the claim began the execution.
func (c *Claim) First() bool { return c.Lease.Token == 1 }

const (
	// completedStepsSQL is the steps that a new attempt does not run again.
	completedStepsSQL = `(SELECT json_agg(json_build_object('nodeId', s.node_id, 'nodeType', s.node_type,
    'outcome', s.outcome, 'branch', s.branch, 'code', s.code, 'httpStatus', s.http_status, 'output', s.output,
    'startedAt', s.started_at, 'finishedAt', s.finished_at) ORDER BY s.finished_at, s.node_id)
  FROM relayops.step_executions s WHERE s.execution_id = r.execution_id
    AND (s.outcome IN ('SUCCEEDED', 'CONTINUED') OR s.outcome = 'FAILED' AND s.branch = 'error'))`

	// rowSQL is what is read of a row r; the steps only where the caller has the lease, and not for the first time.
	rowSQL = `SELECT r.execution_id, r.org_id, r.event_id, r.operation_version, r.event_type, r.payload_sha256,
  r.revision, r.state, r.attempt, r.fencing_token, r.lease_owner, r.executed_ms, r.code, r.status_tags,
  r.stream, r.stream_seq, r.occurred_at, now(), coalesce(r.due_at > now(), false),
  coalesce((extract(epoch FROM r.lease_until - now()) * 1000)::bigint, 0),
  CASE WHEN r.lease_owner = @owner AND r.fencing_token > 1 THEN ` + completedStepsSQL + ` END `

	// leaseSQL takes the lease of a row e. A deadline that has passed cancels it; attempts that are used up are not
	// counted further, and marked by the code. A row that is leased under this very name was claimed by a try whose
	// answer was lost: that claim is counted already, and only its lease begins anew.
	leaseSQL = `
  state = CASE WHEN e.deadline_at <= now() THEN 'CANCELLED' ELSE 'RUNNING' END,
  attempt = e.attempt + CASE WHEN e.lease_owner = @owner OR e.deadline_at <= now() OR e.attempt >= @max_attempts
    THEN 0 ELSE 1 END,
  fencing_token = e.fencing_token + CASE WHEN e.lease_owner = @owner THEN 0 ELSE 1 END,
  lease_owner = @owner,
  lease_until = CASE WHEN e.deadline_at <= now() THEN NULL ELSE now() + @lease::interval END,
  due_at = NULL,
  code = CASE WHEN e.deadline_at <= now() THEN 'deadline_exceeded'
              WHEN e.lease_owner = @owner THEN e.code
              WHEN e.attempt >= @max_attempts THEN 'max_attempts_exceeded' ELSE '' END,
  started_at = coalesce(e.started_at, now()),
  finished_at = CASE WHEN e.deadline_at <= now() THEN now() END`

	claimSQL = `
WITH claimed AS (
  INSERT INTO relayops.pipeline_executions AS e (execution_id, org_id, pipeline_key, event_id, operation_version,
    event_type, aggregate_type, aggregate_id, correlation_id, trace_parent, payload_sha256, revision,
    state, attempt, fencing_token, lease_owner, lease_until, deadline_at, code, stream, stream_seq, occurred_at,
    started_at, finished_at)
  SELECT @execution_id::uuid, @org, @pipeline, @event_id::uuid, @version::integer,
    @event_type, @aggregate_type, @aggregate_id, @correlation_id, @trace_parent, @payload_sha256::bytea, @revision,
    CASE WHEN d.passed THEN 'CANCELLED' ELSE 'RUNNING' END, CASE WHEN d.passed THEN 0 ELSE 1 END, 1, @owner,
    CASE WHEN d.passed THEN NULL ELSE now() + @lease::interval END, @deadline_at::timestamptz,
    CASE WHEN d.passed THEN 'deadline_exceeded' ELSE '' END, @stream, @stream_seq::bigint, @occurred_at::timestamptz,
    now(), CASE WHEN d.passed THEN now() END
  FROM (SELECT coalesce(@deadline_at::timestamptz <= now(), false) AS passed) d
  ON CONFLICT ON CONSTRAINT pipeline_executions_key DO UPDATE SET` + leaseSQL + `
  WHERE e.payload_sha256 = excluded.payload_sha256
    AND (e.state = 'RETRY' AND e.due_at <= now()
      OR e.state = 'RUNNING' AND e.lease_until <= now() AND @take_over::boolean
      OR e.state = 'RUNNING' AND e.lease_owner = @owner)
  RETURNING e.*
), found AS (
  SELECT * FROM claimed
  UNION ALL
  SELECT * FROM relayops.pipeline_executions
  WHERE org_id = @org AND pipeline_key = @pipeline AND event_id = @event_id::uuid
    AND operation_version = @version::integer AND NOT EXISTS (SELECT FROM claimed)
)
` + rowSQL + `FROM found r`
)

// Claim takes the lease of a delivered event's execution, in one statement. Its errors are [ErrNoOrg],
// [ErrUnavailable] and [ErrRefused]; the end of ctx gives ErrUnavailable also when a claim may have been made, which
// then counts as a crash of its attempt.
func (l *Ledger) Claim(ctx context.Context, request Request) (Claim, error) {
	if request.Delivery.OrgID == "" {
		return Claim{}, ErrNoOrg
	}
	owner := l.names.next()
	arguments, err := l.claimArguments(&request, owner)
	if err != nil {
		return Claim{}, err
	}
	var claim Claim
	err = l.settle(ctx, fmt.Sprintf("claim event %s", request.Delivery.ID), true,
		func(ctx context.Context, _ bool) error {
			// The same owner name: a try that was committed without our knowledge finds its own row.
			found, err := l.claimOnce(ctx, arguments, owner, request)
			claim = found
			return err
		})
	return claim, err
}

func (l *Ledger) claimArguments(request *Request, owner string) (namedArgs, error) {
	d := request.Delivery
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("make an execution id: %w", err)
	}
	return namedArgs{
		"execution_id": id, "org": d.OrgID, "pipeline": l.config.PipelineKey, "event_id": d.ID,
		"version": d.OperationVersion, "event_type": d.EventType, "aggregate_type": d.AggregateType,
		"aggregate_id": d.AggregateID, "correlation_id": d.CorrelationID,
		"trace_parent": d.Headers[event.HeaderTraceParent], "payload_sha256": d.PayloadSHA256[:],
		"revision": request.Revision, "owner": owner, "lease": l.config.Lease, "deadline_at": l.deadline(d),
		"stream": request.Stream, "stream_seq": int64(request.StreamSeq),
		"occurred_at": d.OccurredAt, "max_attempts": l.config.MaxAttempts, "take_over": request.TakeOver,
	}, nil
}

func (l *Ledger) deadline(d *event.Delivery) *time.Time {
	if l.config.Deadline <= 0 {
		return nil
	}
	at := d.OccurredAt.Add(l.config.Deadline)
	return &at
}

// racePause is how long to wait before a claim is tried again that met a row in the middle of a change.
const racePause = 5 * time.Millisecond

// claimOnce repeats the statement as long as another transaction changes the row under it.
func (l *Ledger) claimOnce(ctx context.Context, arguments namedArgs, owner string, request Request,
) (Claim, error) {
	for {
		rows, err := l.pool.Query(ctx, claimSQL, arguments)
		if err != nil {
			return Claim{}, err
		}
		found, err := pgx.CollectRows(rows, scanRow)
		if err != nil {
			return Claim{}, err
		}
		if len(found) == 1 {
			if claim, settled := found[0].judge(owner, request.Delivery.PayloadSHA256, request.TakeOver); settled {
				return claim, nil
			}
		}
		select {
		case <-ctx.Done():
			return Claim{}, ctx.Err()
		case <-time.After(racePause):
		}
	}
}

// row is a ledger row as rowSQL reads it.
type row struct {
	claim   Claim
	owner   string
	code    engine.Code
	waiting bool
}

func scanRow(rows pgx.CollectableRow) (row, error) {
	var (
		r                       row
		hash                    []byte
		executedMS, leaseLeftMS int64
		streamSeq               int64
		steps                   []byte
	)
	c := &r.claim
	err := rows.Scan(&c.Lease.ExecutionID, &c.OrgID, &c.EventID, &c.OperationVersion, &c.EventType, &hash,
		&c.Revision, &c.State, &c.Lease.Attempt, &c.Lease.Token, &r.owner, &executedMS, &r.code, &c.Tags,
		&c.Stream, &streamSeq, &c.OccurredAt, &c.ClaimedAt, &r.waiting, &leaseLeftMS, &steps)
	if err != nil {
		return r, err
	}
	copy(c.PayloadSHA256[:], hash)
	c.Executed = time.Duration(executedMS) * time.Millisecond
	c.LeaseLeft = time.Duration(leaseLeftMS) * time.Millisecond
	c.StreamSeq = uint64(streamSeq)
	c.Completed, err = decodeSteps(steps)
	return r, err
}

// judge says what a claim under the given owner name has found. Not settled: the row could be claimed and was not,
// because it changed in between.
func (r *row) judge(owner string, hash [32]byte, takeOver bool) (claim Claim, settled bool) {
	claim = r.claim
	switch {
	case r.owner == owner:
		claim.Verdict = r.leased()
	case claim.PayloadSHA256 != hash:
		claim.Verdict = PayloadConflict
	case claim.State.Terminal():
		claim.Verdict = AlreadyTerminal
	case claim.State == Retry && r.waiting:
		claim.Verdict = WaitingForRetry
	case claim.State == Running && (claim.LeaseLeft > 0 || !takeOver):
		claim.Verdict = LeasedByOther
	default:
		return claim, false
	}
	if claim.Verdict != Claimed && claim.Verdict != AttemptsExhausted {
		claim.Lease = Lease{ExecutionID: claim.Lease.ExecutionID}
	}
	return claim, true
}

// leased is the verdict about a row that the claimer's own statement changed last.
func (r *row) leased() Verdict {
	switch {
	case r.claim.State == Cancelled:
		return DeadlinePassed
	case r.code == engine.CodeMaxAttemptsExceeded:
		return AttemptsExhausted
	default:
		return Claimed
	}
}

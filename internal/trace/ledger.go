package trace

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const executionColumns = `
	execution_id, org_id, pipeline_key, event_id, event_type, operation_version, revision, state, attempt, code,
	executed_ms, created_at, started_at, finished_at, due_at, deadline_at, lease_owner, lease_until, status_tags`

func scanExecution(row pgx.CollectableRow) (Execution, error) {
	var e Execution
	var executedMS int64
	var tags []byte
	err := row.Scan(&e.ID, &e.OrgID, &e.PipelineKey, &e.EventID, &e.EventType, &e.OperationVersion, &e.Revision,
		&e.State, &e.Attempt, &e.Code, &executedMS, &e.CreatedAt, &e.StartedAt, &e.FinishedAt, &e.DueAt,
		&e.DeadlineAt, &e.LeaseOwner, &e.LeaseUntil, &tags)
	if err != nil {
		return Execution{}, err
	}
	e.Executing = Milliseconds(executedMS * 1_000_000)
	if err := json.Unmarshal(tags, &e.Tags); err != nil {
		return Execution{}, fmt.Errorf("status tags of execution %s: %w", e.ID, err)
	}
	return e, nil
}

func (l *loader) executions(ctx context.Context) ([]Execution, error) {
	rows, err := l.tx.Query(ctx, `SELECT`+executionColumns+`
		FROM relayops.pipeline_executions WHERE event_id = $1 AND ($2 = '' OR org_id = $2)
		ORDER BY created_at, pipeline_key, operation_version`, l.id, l.org)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	executions, err := pgx.CollectRows(rows, scanExecution)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	return executions, nil
}

const deadLetterColumns = `
	dead_letter_id, org_id, pipeline_key, event_id, event_type, coalesce(operation_version, 0), execution_id, code,
	node_id, http_status, attempt, stream, stream_seq, created_at`

func scanDeadLetter(row pgx.CollectableRow) (DeadLetter, error) {
	var d DeadLetter
	err := row.Scan(&d.ID, &d.OrgID, &d.PipelineKey, &d.EventID, &d.EventType, &d.OperationVersion, &d.ExecutionID,
		&d.Code, &d.NodeID, &d.HTTPStatus, &d.Attempt, &d.Stream, &d.StreamSeq, &d.CreatedAt)
	return d, err
}

func (l *loader) deadLetters(ctx context.Context) ([]DeadLetter, error) {
	rows, err := l.tx.Query(ctx, `SELECT`+deadLetterColumns+`
		FROM relayops.dead_letters WHERE event_id = $1 AND ($2 = '' OR org_id = $2)
		ORDER BY created_at, dead_letter_id`, l.id, l.org)
	if err != nil {
		return nil, fmt.Errorf("read the dead letters: %w", err)
	}
	letters, err := pgx.CollectRows(rows, scanDeadLetter)
	if err != nil {
		return nil, fmt.Errorf("read the dead letters: %w", err)
	}
	return letters, nil
}

package trace

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// stepRow is one recorded step, with the output of an emit-event node.
type stepRow struct {
	executionID uuid.UUID
	attempt     int32
	step        Step
	emitted     []byte
}

// addSteps fills the attempts and the emitted events of executions.
func (l *loader) addSteps(ctx context.Context, executions []Execution) error {
	ids := make([]uuid.UUID, len(executions))
	for i, execution := range executions {
		ids[i] = execution.ID
	}
	rows, err := l.tx.Query(ctx, `
		SELECT execution_id, attempt, node_id, node_type, outcome, branch, code, http_status, started_at, finished_at,
			duration_us, CASE WHEN node_type = 'emit-event' THEN output END
		FROM relayops.step_executions WHERE execution_id = ANY($1)
		ORDER BY attempt, started_at, finished_at, node_id`, ids)
	if err != nil {
		return fmt.Errorf("read the steps: %w", err)
	}
	steps, err := pgx.CollectRows(rows, scanStep)
	if err != nil {
		return fmt.Errorf("read the steps: %w", err)
	}
	for i := range executions {
		own := stepsOf(executions[i].ID, steps)
		executions[i].Attempts = attemptsOf(executions[i].Attempt, own)
		if executions[i].Emitted, err = l.emitted(ctx, own); err != nil {
			return err
		}
	}
	return nil
}

func scanStep(row pgx.CollectableRow) (stepRow, error) {
	var s stepRow
	var durationUS int64
	err := row.Scan(&s.executionID, &s.attempt, &s.step.NodeID, &s.step.NodeType, &s.step.Outcome, &s.step.Branch,
		&s.step.Code, &s.step.HTTPStatus, &s.step.StartedAt, &s.step.FinishedAt, &durationUS, &s.emitted)
	s.step.Duration = Milliseconds(durationUS * int64(time.Microsecond))
	return s, err
}

func stepsOf(execution uuid.UUID, steps []stepRow) []stepRow {
	var own []stepRow
	for _, step := range steps {
		if step.executionID == execution {
			own = append(own, step)
		}
	}
	return own
}

// attemptsOf groups an execution's steps, in order of attempt, into its attempts 1 to last. An attempt that ended
// before its first step has none. One that was handed back has given its number back: the next has the same.
func attemptsOf(last int32, steps []stepRow) []Attempt {
	for _, step := range steps {
		last = max(last, step.attempt)
	}
	if last < 1 {
		return nil
	}
	attempts := make([]Attempt, last)
	for i := range attempts {
		attempts[i] = Attempt{Number: int32(i) + 1, Steps: []Step{}}
	}
	for _, step := range steps {
		if step.attempt >= 1 {
			attempt := &attempts[step.attempt-1]
			attempt.Steps = append(attempt.Steps, step.step)
		}
	}
	for i := range len(attempts) - 1 {
		attempts[i].BackOff = waitBetween(attempts[i].Steps, attempts[i+1].Steps)
	}
	return attempts
}

// waitBetween is the time from the end of one attempt's last step to the start of the next attempt's first.
func waitBetween(before, after []Step) *Milliseconds {
	if len(before) == 0 || len(after) == 0 {
		return nil
	}
	end, start := before[0].FinishedAt, after[0].StartedAt
	for _, step := range before {
		if step.FinishedAt.After(end) {
			end = step.FinishedAt
		}
	}
	for _, step := range after {
		if step.StartedAt.Before(start) {
			start = step.StartedAt
		}
	}
	return between(&end, &start)
}

// emitted reads the events that emit-event steps wrote, and what became of them in the outbox.
func (l *loader) emitted(ctx context.Context, steps []stepRow) ([]EmittedEvent, error) {
	var events []EmittedEvent
	for _, step := range steps {
		var output struct {
			EventID   uuid.UUID `json:"eventId"`
			EventType string    `json:"eventType"`
		}
		if len(step.emitted) == 0 || step.step.Outcome != "SUCCEEDED" {
			continue
		}
		if err := json.Unmarshal(step.emitted, &output); err != nil {
			return nil, fmt.Errorf("output of step %s of execution %s: %w", step.step.NodeID, step.executionID, err)
		}
		child := EmittedEvent{NodeID: step.step.NodeID, EventID: output.EventID, EventType: output.EventType}
		rows, err := (&loader{tx: l.tx, id: child.EventID, org: l.org, tables: l.tables}).outboxRows(ctx)
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 {
			child.Status = rows[0].publication.Status
		}
		events = append(events, child)
	}
	return events, nil
}

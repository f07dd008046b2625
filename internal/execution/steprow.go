package execution

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/engine"
)

// stepsSQL records steps of the execution that the statement holds. A step of the same number that was interrupted or
// skipped before a hand-back is written over.
const stepsSQL = `steps AS (
  INSERT INTO relayops.step_executions (execution_id, attempt, fencing_token, node_id, node_type, outcome, branch, code,
    http_status, output, started_at, finished_at, duration_us)
  SELECT held.execution_id, @attempt::integer, @token::bigint, s.node_id, s.node_type, s.outcome, s.branch, s.code,
    s.http_status, s.output::jsonb, s.started_at, s.finished_at, s.duration_us
  FROM held CROSS JOIN unnest(@nodes::text[], @node_types::text[], @outcomes::text[], @branches::text[],
    @codes::text[], @http_statuses::integer[], @outputs::text[], @started::timestamptz[], @finished::timestamptz[],
    @durations::bigint[]) AS s (node_id, node_type, outcome, branch, code, http_status, output, started_at,
    finished_at, duration_us)
  ON CONFLICT (execution_id, node_id, attempt) DO UPDATE SET node_type = excluded.node_type,
    outcome = excluded.outcome, branch = excluded.branch, code = excluded.code, http_status = excluded.http_status,
    output = excluded.output, fencing_token = excluded.fencing_token, started_at = excluded.started_at,
    finished_at = excluded.finished_at, duration_us = excluded.duration_us
)`

// stepArguments are the arguments of stepsSQL, and the tags of the steps.
func stepArguments(steps []engine.Step) (namedArgs, error) {
	n := len(steps)
	var (
		nodes, types, outcomes = make([]string, n), make([]string, n), make([]string, n)
		branches, codes        = make([]string, n), make([]string, n)
		statuses               = make([]int32, n)
		outputs                = make([]*string, n)
		started, finished      = make([]time.Time, n), make([]time.Time, n)
		durations              = make([]int64, n)
		tags                   = []engine.StatusTag{}
	)
	for i := range steps {
		s := &steps[i]
		nodes[i], types[i], outcomes[i], branches[i] = s.NodeID, s.NodeType, string(s.Outcome), s.Branch
		codes[i], statuses[i] = string(s.Code), int32(s.HTTPStatus)
		if len(s.Output) > 0 {
			text := string(s.Output)
			outputs[i] = &text
		}
		started[i], finished[i] = s.StartedAt, s.FinishedAt
		durations[i] = max(s.FinishedAt.Sub(s.StartedAt), 0).Microseconds()
		tags = append(tags, s.Tags...)
	}
	tagsJSON, err := json.Marshal(tags)
	if err != nil {
		return nil, fmt.Errorf("marshal status tags: %w", err)
	}
	return namedArgs{
		"nodes": nodes, "node_types": types, "outcomes": outcomes, "branches": branches, "codes": codes,
		"http_statuses": statuses, "outputs": outputs, "started": started, "finished": finished,
		"durations": durations, "tags": string(tagsJSON),
	}, nil
}

func eventsOf(steps []engine.Step) []event.Envelope {
	var events []event.Envelope
	for i := range steps {
		events = append(events, steps[i].Events...)
	}
	return events
}

func nodesOf(steps []engine.Step) []string {
	nodes := make([]string, len(steps))
	for i := range steps {
		nodes[i] = steps[i].NodeID
	}
	return nodes
}

// stepRow is a step as completedStepsSQL gives it.
type stepRow struct {
	NodeID     string             `json:"nodeId"`
	NodeType   string             `json:"nodeType"`
	Outcome    engine.StepOutcome `json:"outcome"`
	Branch     string             `json:"branch"`
	Code       engine.Code        `json:"code"`
	HTTPStatus int                `json:"httpStatus"`
	Output     json.RawMessage    `json:"output"`
	StartedAt  time.Time          `json:"startedAt"`
	FinishedAt time.Time          `json:"finishedAt"`
}

func decodeSteps(text []byte) ([]engine.Step, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var rows []stepRow
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("%w: read recorded steps: %w", ErrRefused, err)
	}
	steps := make([]engine.Step, len(rows))
	for i := range rows {
		r := &rows[i]
		steps[i] = engine.Step{
			NodeID: r.NodeID, NodeType: r.NodeType, Outcome: r.Outcome, Branch: r.Branch, Code: r.Code,
			HTTPStatus: r.HTTPStatus, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
		}
		// No output is SQL's NULL, which this form shows as JSON's null.
		if string(r.Output) != "null" {
			steps[i].Output = r.Output
		}
	}
	return steps, nil
}

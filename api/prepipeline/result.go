package prepipeline

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/engine"
)

// Result is what came of a pipeline.
type Result struct {
	// ExecutionID is the same for the same organisation, pipeline and event.
	ExecutionID uuid.UUID
	// Steps that ran or were skipped, in the order in which they ended.
	Steps []Step
	// Tags that set-status nodes gave, in the same order.
	Tags []StatusTag
	// Events that emit-event nodes gave; none when the pipeline failed.
	Events []event.Envelope
}

// Step is one node's part.
type Step struct {
	Node, Type string
	// Outcome is SUCCEEDED, FAILED, CONTINUED, SKIPPED or INTERRUPTED.
	Outcome string
	// Branch that was taken; empty for none.
	Branch string
	// Code of a failure; empty for none.
	Code       string
	HTTPStatus int
	// Output is the node's output as JSON; nil for none.
	Output                json.RawMessage
	StartedAt, FinishedAt time.Time
}

// StatusTag is what a set-status node says.
type StatusTag struct {
	Phase, Tag, Name string
	At               time.Time
}

// Output is the output of a node, nil if it has none.
func (r *Result) Output(node string) json.RawMessage {
	for i := range r.Steps {
		if r.Steps[i].Node == node {
			return r.Steps[i].Output
		}
	}
	return nil
}

func newResult(id uuid.UUID, steps []engine.Step) Result {
	result := Result{ExecutionID: id}
	for i := range steps {
		s := &steps[i]
		result.Steps = append(result.Steps, Step{
			Node: s.NodeID, Type: s.NodeType, Outcome: string(s.Outcome), Branch: s.Branch, Code: string(s.Code),
			HTTPStatus: s.HTTPStatus, Output: s.Output, StartedAt: s.StartedAt, FinishedAt: s.FinishedAt,
		})
		for _, tag := range s.Tags {
			result.Tags = append(result.Tags, StatusTag(tag))
		}
		result.Events = append(result.Events, s.Events...)
	}
	return result
}

package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/relayops/relayops/api/event"
)

// StepOutcome is how a step ended.
type StepOutcome string

// The outcomes of a step. INTERRUPTED is a step that a lost lease or a forced stop cut off.
const (
	StepSucceeded   StepOutcome = "SUCCEEDED"
	StepFailed      StepOutcome = "FAILED"
	StepContinued   StepOutcome = "CONTINUED"
	StepSkipped     StepOutcome = "SKIPPED"
	StepInterrupted StepOutcome = "INTERRUPTED"
)

// Step is the record of one node in one attempt, with the results that RelayOps itself stores: they commit with it.
type Step struct {
	NodeID   string
	NodeType string
	Outcome  StepOutcome
	// Branch that was taken, such as "success", "true" or "error"; empty where none was (aborted, skipped).
	Branch     string
	Code       Code
	HTTPStatus int
	// Output is what later nodes read as {{steps.<node>.output…}}; nil for none.
	Output     json.RawMessage
	StartedAt  time.Time
	FinishedAt time.Time
	// Tags are set on the execution, Events are written to the outbox, both in the transaction of this record.
	Tags   []StatusTag
	Events []event.Envelope
}

// StatusTag is what a set-status node sets on an execution.
type StatusTag struct {
	Phase string    `json:"phase"`
	Tag   string    `json:"tag"`
	Name  string    `json:"name"`
	At    time.Time `json:"at"`
}

// Journal makes steps durable.
type Journal interface {
	// Commit records steps and their results in one transaction, under the lease of the execution. An error means
	// that the execution must not go on here: the lease is lost, or the record's fate could not be settled.
	Commit(ctx context.Context, steps []Step) error
}

// Execution is one attempt of one event in one pipeline.
type Execution struct {
	ID          uuid.UUID
	PipelineKey string
	Event       event.Envelope
	// OperationVersion is 1 for a first run, more for a reprocess.
	OperationVersion int32
	// Attempt counts from 1; the last one is MaxAttempts.
	Attempt     int
	MaxAttempts int
	// Completed are the steps that earlier attempts recorded and that are not run again: SUCCEEDED, CONTINUED, and
	// FAILED ones that took their error branch. SKIPPED ones are planned anew.
	Completed []Step
}

// IdempotencyKey of a node's outbound call: the same in every attempt of the execution.
func (e *Execution) IdempotencyKey(nodeID string) string { return e.ID.String() + "/" + nodeID }

// Outcome is how an attempt ended.
type Outcome string

// The outcomes of an attempt. HandedBack: a drain stopped it between two steps; it is nobody's failure.
const (
	Succeeded  Outcome = "succeeded"
	Failed     Outcome = "failed"
	HandedBack Outcome = "handed_back"
)

// Result is what became of an attempt.
type Result struct {
	Outcome Outcome
	// Failure is set when Outcome is Failed.
	Failure *Failure
	// Pending are steps that finished and are not in the journal yet: the caller records them in the transaction
	// that ends the attempt.
	Pending []Step
}

// Runtime is what an attempt runs with.
type Runtime struct {
	// Journal makes steps durable while the attempt runs. Nil: every step is left to [Result].Pending.
	Journal Journal
	// Now is the clock.
	Now func() time.Time
	// StepTimeout bounds each step that has no timeout of its own; 0: no bound.
	StepTimeout time.Duration
	// Parallelism is how many steps of one execution run at once, 1 or more.
	Parallelism int
	// Draining is closed when no further step may start. Nil: never.
	Draining <-chan struct{}
	// Services are what node types act through.
	Services Services
}

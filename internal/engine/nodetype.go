package engine

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/relayops/relayops/api/event"
)

// Effect says what a node type does to the world, and so when its record has to be durable.
type Effect int

const (
	// Pure steps can be run again with the same result: their record waits for the next commit.
	Pure Effect = iota
	// Stored steps have results that RelayOps itself stores (tags, events): they commit with the record.
	Stored
	// External steps act on something else, at least once: they are recorded at once, so that a resume does not
	// repeat them.
	External
)

// Type is a node type: one package under internal/node, one entry in its registry.
type Type interface {
	// Name as it stands in Node.Type.
	Name() string
	// Schema is the JSON Schema (draft 2020-12) of Node.Config.
	Schema() []byte
	Effect() Effect
	// Compile prepares a configuration, an object. Every fault is in the returned error: a [FieldErrors] whose
	// fields are paths below config. It is called also for a configuration that the schema refused, so that all
	// mistakes are reported at once; its runner is not used then. It never panics.
	Compile(config json.RawMessage) (Runner, error)
}

// Registry is the node types that a pipeline may use, by name.
type Registry map[string]Type

// Reference is a former step whose record a node reads, in a placeholder or an expression.
type Reference struct {
	// Step is the node's id.
	Step string
	// Field is where it is read, as a path below config.
	Field string
}

// Runner is a node, compiled.
type Runner interface {
	// Branches are the outcomes that edges may name beside "success" and "error"; nil for none. A type that has
	// branches does not have "success", unless it lists it.
	Branches() []string
	// References are the former steps that the node reads; nil for none.
	References() []Reference
	// Run does the step, and ends soon after ctx does. Its error is a [*Failure]; any other error counts as
	// CodePermanentError. It may be called from several goroutines at once.
	Run(ctx context.Context, call *Call) (Output, error)
}

// TimeLimited is a Runner with a default for the step's timeout that is shorter than the pipeline's. Node.Timeout
// overrides it.
type TimeLimited interface {
	DefaultTimeout() time.Duration
}

// Call is what a step sees.
type Call struct {
	Execution *Execution
	NodeID    string
	// Data is what placeholders and expressions read: it has the keys event, payload, steps and context. steps holds
	// the nodes that lie before this one. It is read only, and its numbers are json.Number.
	Data     map[string]any
	Now      time.Time
	Services Services
}

// IdempotencyKey of this step's outbound call.
func (c *Call) IdempotencyKey() string { return c.Execution.IdempotencyKey(c.NodeID) }

// Output is what a step gives.
type Output struct {
	// Value is marshalled as the step's output; nil for none.
	Value any
	// Branch is one of Runner.Branches; empty means "success".
	Branch string
	// HTTPStatus is recorded with the step; 0 for none.
	HTTPStatus int
	Tags       []StatusTag
	Events     []event.Envelope
}

// Services are the outside that External nodes act through; a nil one makes its node type fail permanently.
type Services struct {
	// HTTP dials only what the address policy allows.
	HTTP *http.Client
	// MaxResponseBytes bounds an HTTP response's body.
	MaxResponseBytes int64
	// Publisher publishes to the broker.
	Publisher Publisher
	// EventSubjectPrefix is where the relay publishes events; a publish node may not publish below it.
	EventSubjectPrefix string
}

// Publisher publishes a message and waits for the broker's acknowledgement.
type Publisher interface {
	Publish(ctx context.Context, subject, messageID string, headers map[string]string, body []byte) error
}

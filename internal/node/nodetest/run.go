// Package nodetest runs one node of a type through the engine, for the tests of node types.
package nodetest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node/start"
)

// Case is one node and what it runs with. The node's id is "n"; a step "start" lies before it.
type Case struct {
	Type   engine.Type
	Config string
	// Payload of the event; {} by default.
	Payload string
	// StartOutput is what {{steps.start.output}} reads; none by default.
	StartOutput string
	// Timeout of the step; 10 s by default.
	Timeout  time.Duration
	Services engine.Services
	// Change changes the execution.
	Change func(*engine.Execution)
}

// Now is the time that every step runs at.
var Now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// ExecutionID and EventID are those of every case.
var (
	ExecutionID = uuid.MustParse("0197a5f0-1111-7000-8000-000000000001")
	EventID     = uuid.MustParse("0197a5f0-2222-7000-8000-000000000002")
)

// Faults are the mistakes of a config, one a line, their fields below the node's config.
func Faults(t *testing.T, nodeType engine.Type, config string) string {
	t.Helper()
	_, err := compile(nodeType, config)
	if err == nil {
		return ""
	}
	var faults engine.FieldErrors
	if !errors.As(err, &faults) {
		t.Fatalf("compile: %v", err)
	}
	lines := make([]string, len(faults))
	for i, fault := range faults {
		field := strings.TrimPrefix(strings.TrimPrefix(fault.Field, "nodes[1].config"), ".")
		lines[i] = field + ": found " + fault.Found + "; allowed: " + fault.Allowed
	}
	return strings.Join(lines, "\n")
}

func compile(nodeType engine.Type, config string) (*engine.Graph, error) {
	types := engine.Registry{engine.TypeStart: start.Type{}, nodeType.Name(): nodeType}
	return engine.Compile(engine.Definition{
		Nodes: []engine.Node{
			{ID: "start", Type: engine.TypeStart}, {ID: "n", Type: nodeType.Name(), Config: json.RawMessage(config)},
		},
		Edges: []engine.Edge{{From: "start", To: "n"}},
	}, types)
}

// Run runs a case: the record of the node's step, and its failure or nil.
func Run(t *testing.T, c Case) (engine.Step, *engine.Failure) {
	t.Helper()
	graph, err := compile(c.Type, c.Config)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	if c.Payload == "" {
		c.Payload = "{}"
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	execution := engine.Execution{
		ID: ExecutionID, PipelineKey: "dev/default/orders", OperationVersion: 1, Attempt: 1, MaxAttempts: 5,
		Event: event.Envelope{
			ID: EventID, OrgID: "acme", EventType: "OrderConfirmed", EventVersion: 1, Payload: json.RawMessage(c.Payload),
			OccurredAt: Now, AggregateType: "Order", AggregateID: "A-1", CorrelationID: "corr-1",
		},
		Completed: []engine.Step{{
			NodeID: "start", Outcome: engine.StepSucceeded, Branch: engine.BranchSuccess, Output: json.RawMessage(c.StartOutput),
		}},
	}
	if c.Change != nil {
		c.Change(&execution)
	}
	result, err := graph.Run(t.Context(), execution, engine.Runtime{
		Now: func() time.Time { return Now }, StepTimeout: c.Timeout, Services: c.Services,
	})
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	if len(result.Pending) != 1 {
		t.Fatalf("%d steps, failure %v; want the node's", len(result.Pending), result.Failure)
	}
	return result.Pending[0], result.Failure
}

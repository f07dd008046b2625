// Package emitevent is the node that emits an event: into the outbox, in the transaction that records its step. The
// event belongs to the organisation of the event that runs the pipeline, whatever the configuration says.
package emitevent

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/google/uuid"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node/config"
	"github.com/relayops/relayops/internal/node/tracing"
	"github.com/relayops/relayops/internal/placeholder"
)

const (
	// HeaderDepth counts how many emit-event nodes lie between an event and the application's own.
	HeaderDepth = "relayops-depth"
	// MaxDepth bounds it, so that pipelines that emit their own triggers come to an end.
	MaxDepth = 16
)

//go:embed schema.json
var schema []byte

// Type is the node type emit-event.
type Type struct{}

// Name implements engine.Type.
func (Type) Name() string { return "emit-event" }

// Schema implements engine.Type.
func (Type) Schema() []byte { return schema }

// Effect implements engine.Type.
func (Type) Effect() engine.Effect { return engine.Stored }

// Compile implements engine.Type.
func (Type) Compile(raw json.RawMessage) (engine.Runner, error) {
	var c struct {
		EventType     string          `json:"eventType"`
		EventVersion  int32           `json:"eventVersion"`
		AggregateType string          `json:"aggregateType"`
		AggregateID   string          `json:"aggregateId"`
		Payload       json.RawMessage `json:"payload"`
	}
	c.EventVersion = 1
	var read config.Reader
	read.Decode(raw, &c)
	r := &runner{
		version: c.EventVersion, eventType: read.Text("eventType", c.EventType),
		aggregateType: read.Text("aggregateType", c.AggregateType), aggregateID: read.Text("aggregateId", c.AggregateID),
	}
	if r.eventType != nil && r.eventType.IsLiteral() && c.EventType != "" && !event.ValidType(c.EventType) {
		read.Fault("eventType", strconv.Quote(c.EventType),
			"a letter, then letters, digits, '.', '_' or '-', at most 128 bytes")
	}
	if len(c.Payload) > 0 {
		r.payload = read.Template("payload", c.Payload)
	}
	r.Reads = read.Reads()
	return r, read.Err()
}

type runner struct {
	config.Reads
	version                               int32
	eventType, aggregateType, aggregateID *placeholder.Text
	payload                               *placeholder.Template
}

// Branches implements engine.Runner.
func (r *runner) Branches() []string { return nil }

// Run implements engine.Runner.
func (r *runner) Run(ctx context.Context, call *engine.Call) (engine.Output, error) {
	cause := &call.Execution.Event
	emitted := event.Envelope{
		ID: idOf(call), OrgID: cause.OrgID, EventVersion: r.version,
		CorrelationID: cause.CorrelationID, CausationID: cause.ID.String(), OccurredAt: call.Now.UTC(),
	}
	if emitted.CorrelationID == "" {
		emitted.CorrelationID = cause.ID.String()
	}
	var err error
	if emitted.Headers, err = headers(ctx, call); err != nil {
		return engine.Output{}, err
	}
	if err := r.fill(&emitted, call); err != nil {
		return engine.Output{}, err
	}
	if err := emitted.Validate(); err != nil {
		return engine.Output{}, engine.Permanent(engine.CodeEventRefused, err)
	}
	return engine.Output{
		Value:  map[string]any{"eventId": emitted.ID.String(), "eventType": emitted.EventType},
		Events: []event.Envelope{emitted},
	}, nil
}

// idOf makes the event's id of execution and node, so that a step that runs again emits the same event.
func idOf(call *engine.Call) uuid.UUID {
	return uuid.NewSHA1(call.Execution.ID, []byte(call.NodeID+"/0"))
}

// fill sets what the configuration says. An event without an aggregate of its own has its cause's.
func (r *runner) fill(emitted *event.Envelope, call *engine.Call) error {
	for _, field := range []struct {
		text *placeholder.Text
		into *string
		most int
	}{
		{r.eventType, &emitted.EventType, event.MaxTokenBytes},
		{r.aggregateType, &emitted.AggregateType, event.MaxTextBytes},
		{r.aggregateID, &emitted.AggregateID, event.MaxTextBytes},
	} {
		text, err := field.text.Fill(call.Data, field.most)
		if err != nil {
			return err
		}
		*field.into = text
	}
	if emitted.AggregateType == "" && emitted.AggregateID == "" {
		emitted.AggregateType, emitted.AggregateID = call.Execution.Event.AggregateType, call.Execution.Event.AggregateID
	}
	payload, err := r.payload.Render(call.Data, event.MaxPayloadBytes)
	if err != nil {
		return err
	}
	emitted.Payload, err = engine.MarshalJSON(payload, event.MaxPayloadBytes)
	if errors.Is(err, engine.ErrTooLarge) {
		return engine.Permanent(engine.CodeEventRefused, err)
	}
	return err
}

func headers(ctx context.Context, call *engine.Call) (map[string]string, error) {
	depth := 0
	if text := call.Execution.Event.Headers[HeaderDepth]; text != "" {
		var err error
		if depth, err = strconv.Atoi(text); err != nil || depth < 0 {
			return nil, engine.Permanent(engine.CodeEventRefused, fmt.Errorf("header %s is no number", HeaderDepth))
		}
	}
	if depth >= MaxDepth {
		return nil, engine.Permanent(engine.CodeEventRefused,
			fmt.Errorf("%d events caused each other before this one; allowed: at most %d", depth, MaxDepth))
	}
	all := map[string]string{HeaderDepth: strconv.Itoa(depth + 1)}
	maps.Copy(all, tracing.Headers(ctx, call))
	return all, nil
}

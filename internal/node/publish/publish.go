// Package publish is the node that publishes a message to the broker, for subscribers outside RelayOps. The message id
// is the step's idempotency key, so that the broker drops a repetition within its duplicate window.
package publish

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node/config"
	"github.com/relayops/relayops/internal/node/tracing"
	"github.com/relayops/relayops/internal/placeholder"
)

// Limits of a message, in bytes.
const (
	MaxSubjectBytes = 255
	MaxBodyBytes    = event.MaxPayloadBytes
	maxHeaderBytes  = 4096
)

//go:embed schema.json
var schema []byte

// Type is the node type publish.
type Type struct{}

// Name implements engine.Type.
func (Type) Name() string { return "publish" }

// Schema implements engine.Type.
func (Type) Schema() []byte { return schema }

// Effect implements engine.Type.
func (Type) Effect() engine.Effect { return engine.External }

// Compile implements engine.Type.
func (Type) Compile(raw json.RawMessage) (engine.Runner, error) {
	var c struct {
		Subject string            `json:"subject"`
		Headers map[string]string `json:"headers"`
		Body    json.RawMessage   `json:"body"`
	}
	var read config.Reader
	read.Decode(raw, &c)
	r := &runner{subject: read.Text("subject", c.Subject), headers: read.Texts("headers", c.Headers)}
	if r.subject != nil {
		if err := checkSubject(shapeOf(r.subject), ""); err != nil {
			read.Fault("subject", err.Error(), "tokens with '.' between them, such as erp.orders.{{event.orgId}}")
		}
	}
	for name := range c.Headers {
		if reservedHeader(name) {
			read.Fault(engine.KeyField("headers", name), "a header that RelayOps or the broker sets", "another name")
		}
	}
	if len(c.Body) > 0 {
		r.body = read.Template("body", c.Body)
	}
	r.Reads = read.Reads()
	return r, read.Err()
}

type runner struct {
	config.Reads
	subject *placeholder.Text
	headers []config.NamedText
	body    *placeholder.Template
}

// Branches implements engine.Runner.
func (r *runner) Branches() []string { return nil }

// Run implements engine.Runner.
func (r *runner) Run(ctx context.Context, call *engine.Call) (engine.Output, error) {
	if call.Services.Publisher == nil {
		return engine.Output{}, engine.Permanent(engine.CodePermanentError, errors.New("there is no broker here"))
	}
	subject, err := r.fillSubject(call)
	if err != nil {
		return engine.Output{}, err
	}
	headers, err := r.fillHeaders(ctx, call)
	if err != nil {
		return engine.Output{}, err
	}
	body, err := r.fillBody(call)
	if err != nil {
		return engine.Output{}, err
	}
	id := call.IdempotencyKey()
	if err := call.Services.Publisher.Publish(ctx, subject, id, headers, body); err != nil {
		return engine.Output{}, publishFailure(ctx, err)
	}
	return engine.Output{Value: map[string]any{"subject": subject, "messageId": id}}, nil
}

// publishFailure keeps the class that the publisher gave; an error without one may pass.
func publishFailure(ctx context.Context, err error) error {
	var failure *engine.Failure
	switch {
	case errors.As(err, &failure):
		return err
	case ctx.Err() != nil:
		return engine.Transient(engine.CodeTimeout, err)
	default:
		return engine.Transient(engine.CodePublishFailed, err)
	}
}

func (r *runner) fillSubject(call *engine.Call) (string, error) {
	subject, err := r.subject.FillEach(call.Data, MaxSubjectBytes, func(_ int, value string) (string, error) {
		if value == "" {
			return "", invalid(errors.New("an empty value in the subject"))
		}
		return event.EscapeToken(value), nil
	})
	if err != nil {
		return "", err
	}
	if err := checkSubject(subject, call.Services.EventSubjectPrefix); err != nil {
		return "", invalid(err)
	}
	return subject, nil
}

func (r *runner) fillHeaders(ctx context.Context, call *engine.Call) (map[string]string, error) {
	headers := tracing.Headers(ctx, call)
	for _, header := range r.headers {
		value, err := header.Text.Fill(call.Data, maxHeaderBytes)
		if err != nil {
			return nil, err
		}
		for i := range len(value) {
			if value[i] < 0x20 || value[i] == 0x7f {
				return nil, invalid(fmt.Errorf("header %s with a control character", header.Name))
			}
		}
		headers[header.Name] = value
	}
	return headers, nil
}

// fillBody gives the message's body: a text as it is, everything else as JSON, and the event's payload byte for byte
// where the configuration has no body.
func (r *runner) fillBody(call *engine.Call) ([]byte, error) {
	if r.body == nil {
		return call.Execution.Event.Payload, nil
	}
	value, err := r.body.Render(call.Data, MaxBodyBytes)
	if err != nil {
		return nil, err
	}
	if text, isText := value.(string); isText {
		return []byte(text), nil
	}
	body, err := engine.MarshalJSON(value, MaxBodyBytes)
	if errors.Is(err, engine.ErrTooLarge) {
		return nil, engine.Permanent(engine.CodeOutputTooLarge, err)
	}
	return body, err
}

func invalid(err error) error { return engine.Permanent(engine.CodeInvalidRequest, err) }

// Package setstatus is the node that sets a status tag on the execution, for whoever asks how an order is doing.
package setstatus

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"unicode"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node/config"
	"github.com/relayops/relayops/internal/placeholder"
)

// MaxTextBytes bounds tag, name and phase after their placeholders are filled in, each in bytes.
const MaxTextBytes = 256

//go:embed schema.json
var schema []byte

// Type is the node type set-status.
type Type struct{}

// Name implements engine.Type.
func (Type) Name() string { return "set-status" }

// Schema implements engine.Type.
func (Type) Schema() []byte { return schema }

// Effect implements engine.Type.
func (Type) Effect() engine.Effect { return engine.Stored }

// Compile implements engine.Type.
func (Type) Compile(raw json.RawMessage) (engine.Runner, error) {
	var c struct {
		StatusTag string `json:"statusTag"`
		Name      string `json:"name"`
		Phase     string `json:"phase"`
	}
	var read config.Reader
	read.Decode(raw, &c)
	r := &runner{
		tag: read.Text("statusTag", c.StatusTag), name: read.Text("name", c.Name), phase: read.Text("phase", c.Phase),
	}
	r.Reads = read.Reads()
	return r, read.Err()
}

type runner struct {
	config.Reads
	tag, name, phase *placeholder.Text
}

// Branches implements engine.Runner.
func (r *runner) Branches() []string { return nil }

// Run implements engine.Runner.
func (r *runner) Run(_ context.Context, call *engine.Call) (engine.Output, error) {
	tag := engine.StatusTag{At: call.Now}
	for _, field := range []struct {
		text *placeholder.Text
		into *string
	}{{r.tag, &tag.Tag}, {r.name, &tag.Name}, {r.phase, &tag.Phase}} {
		text, err := field.text.Fill(call.Data, MaxTextBytes)
		if err != nil {
			return engine.Output{}, err
		}
		for _, c := range text {
			if unicode.IsControl(c) {
				return engine.Output{}, engine.Permanent(engine.CodeInvalidRequest, fmt.Errorf("a status with a control character"))
			}
		}
		*field.into = text
	}
	if tag.Tag == "" {
		return engine.Output{}, engine.Permanent(engine.CodeInvalidRequest, fmt.Errorf("a status without a tag"))
	}
	return engine.Output{
		Value: map[string]any{"phase": tag.Phase, "tag": tag.Tag, "name": tag.Name},
		Tags:  []engine.StatusTag{tag},
	}, nil
}

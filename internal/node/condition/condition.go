// Package condition is the node that asks one question: an expression decides between the branches true and false.
package condition

import (
	"context"
	_ "embed"
	"encoding/json"
	"strconv"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/expression"
	"github.com/relayops/relayops/internal/node/config"
)

//go:embed schema.json
var schema []byte

// Type is the node type condition.
type Type struct{}

// Name implements engine.Type.
func (Type) Name() string { return "condition" }

// Schema implements engine.Type.
func (Type) Schema() []byte { return schema }

// Effect implements engine.Type.
func (Type) Effect() engine.Effect { return engine.Pure }

// Compile implements engine.Type.
func (Type) Compile(raw json.RawMessage) (engine.Runner, error) {
	var c struct {
		Expression string `json:"expression"`
	}
	var read config.Reader
	read.Decode(raw, &c)
	program := read.Expression("expression", c.Expression, expression.Bool)
	return &runner{program: program, Reads: read.Reads()}, read.Err()
}

type runner struct {
	config.Reads
	program *expression.Program
}

// Branches implements engine.Runner.
func (r *runner) Branches() []string { return []string{"true", "false"} }

// Run implements engine.Runner.
func (r *runner) Run(ctx context.Context, call *engine.Call) (engine.Output, error) {
	decided, err := r.program.Bool(ctx, call.Data)
	if err != nil {
		return engine.Output{}, err
	}
	return engine.Output{Branch: strconv.FormatBool(decided)}, nil
}

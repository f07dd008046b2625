// Package transform is the node that makes a value of others: a template with placeholders, expressions, or both.
package transform

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/expression"
	"github.com/relayops/relayops/internal/node/config"
	"github.com/relayops/relayops/internal/placeholder"
)

//go:embed schema.json
var schema []byte

// Type is the node type transform.
type Type struct{}

// Name implements engine.Type.
func (Type) Name() string { return "transform" }

// Schema implements engine.Type.
func (Type) Schema() []byte { return schema }

// Effect implements engine.Type.
func (Type) Effect() engine.Effect { return engine.Pure }

// Compile implements engine.Type.
func (Type) Compile(raw json.RawMessage) (engine.Runner, error) {
	var c struct {
		Output      json.RawMessage   `json:"output"`
		Expressions map[string]string `json:"expressions"`
	}
	var read config.Reader
	read.Decode(raw, &c)
	r := &runner{}
	if len(c.Output) == 0 && len(c.Expressions) == 0 {
		read.Fault("", "neither output nor expressions", "one of them, or both")
	}
	if len(c.Output) > 0 {
		r.output = read.Template("output", c.Output)
	}
	var fields map[string]json.RawMessage
	if len(c.Output) > 0 && len(c.Expressions) > 0 && json.Unmarshal(c.Output, &fields) != nil {
		read.Fault("output", "a value that is no object, beside expressions",
			"an object: the expressions' values become fields of it")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Expressions)) {
		at := engine.KeyField("expressions", name)
		if _, double := fields[name]; double {
			read.Fault(at, fmt.Sprintf("%q, a field of output too", name), "each field once")
		}
		program := read.Expression(at, c.Expressions[name], expression.Any)
		r.expressions = append(r.expressions, computed{name: name, program: program})
	}
	r.Reads = read.Reads()
	return r, read.Err()
}

type runner struct {
	config.Reads
	output      *placeholder.Template
	expressions []computed
}

type computed struct {
	name    string
	program *expression.Program
}

// Branches implements engine.Runner.
func (r *runner) Branches() []string { return nil }

// Run implements engine.Runner.
func (r *runner) Run(ctx context.Context, call *engine.Call) (engine.Output, error) {
	var value any
	if r.output != nil {
		var err error
		if value, err = r.output.Render(call.Data, engine.MaxOutputBytes); err != nil {
			return engine.Output{}, err
		}
	}
	if len(r.expressions) == 0 {
		return engine.Output{Value: value}, nil
	}
	object := make(map[string]any, len(r.expressions))
	if fields, isObject := value.(map[string]any); isObject {
		maps.Copy(object, fields)
	}
	for _, one := range r.expressions {
		computed, err := one.program.Value(ctx, call.Data)
		if err != nil {
			return engine.Output{}, err
		}
		object[one.name] = computed
	}
	return engine.Output{Value: object}, nil
}

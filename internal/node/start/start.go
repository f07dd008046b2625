// Package start is the node that a pipeline begins with. It does nothing and has no output.
package start

import (
	"context"
	_ "embed"
	"encoding/json"

	"github.com/relayops/relayops/internal/engine"
)

//go:embed schema.json
var schema []byte

// Type is the node type start.
type Type struct{}

// Name implements engine.Type.
func (Type) Name() string { return engine.TypeStart }

// Schema implements engine.Type.
func (Type) Schema() []byte { return schema }

// Effect implements engine.Type.
func (Type) Effect() engine.Effect { return engine.Pure }

// Compile implements engine.Type.
func (Type) Compile(json.RawMessage) (engine.Runner, error) { return runner{}, nil }

type runner struct{}

// Branches implements engine.Runner.
func (runner) Branches() []string { return nil }

// References implements engine.Runner.
func (runner) References() []engine.Reference { return nil }

// Run implements engine.Runner.
func (runner) Run(context.Context, *engine.Call) (engine.Output, error) { return engine.Output{}, nil }

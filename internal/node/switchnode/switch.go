// Package switchnode is the node type switch: the first case whose expression is true gives the branch.
package switchnode

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/expression"
	"github.com/relayops/relayops/internal/node/config"
)

//go:embed schema.json
var schema []byte

// Type is the node type switch.
type Type struct{}

// Name implements engine.Type.
func (Type) Name() string { return "switch" }

// Schema implements engine.Type.
func (Type) Schema() []byte { return schema }

// Effect implements engine.Type.
func (Type) Effect() engine.Effect { return engine.Pure }

type configuration struct {
	Cases []struct {
		When   string `json:"when"`
		Branch string `json:"branch"`
	} `json:"cases"`
	Default string `json:"default"`
}

// Compile implements engine.Type.
func (Type) Compile(raw json.RawMessage) (engine.Runner, error) {
	var c configuration
	var read config.Reader
	read.Decode(raw, &c)
	r := &runner{otherwise: c.Default}
	for i, one := range c.Cases {
		at := engine.IndexField("cases", i)
		when := read.Expression(engine.JoinField(at, "when"), one.When, expression.Bool)
		r.cases = append(r.cases, branchCase{when: when, branch: one.Branch})
		r.addBranch(&read, engine.JoinField(at, "branch"), one.Branch)
	}
	if c.Default != "" {
		r.addBranch(&read, "default", c.Default)
	}
	r.Reads = read.Reads()
	return r, read.Err()
}

type runner struct {
	config.Reads
	cases     []branchCase
	otherwise string
	branches  []string
}

type branchCase struct {
	when   *expression.Program
	branch string
}

func (r *runner) addBranch(read *config.Reader, field, branch string) {
	if branch == engine.BranchSuccess || branch == engine.BranchError {
		read.Fault(field, fmt.Sprintf("%q, which means something else", branch), "another name")
	}
	if !slices.Contains(r.branches, branch) {
		r.branches = append(r.branches, branch)
	}
}

// Branches implements engine.Runner.
func (r *runner) Branches() []string { return r.branches }

// Run implements engine.Runner.
func (r *runner) Run(ctx context.Context, call *engine.Call) (engine.Output, error) {
	for _, one := range r.cases {
		applies, err := one.when.Bool(ctx, call.Data)
		if err != nil {
			return engine.Output{}, err
		}
		if applies {
			return engine.Output{Branch: one.branch}, nil
		}
	}
	if r.otherwise == "" {
		return engine.Output{}, engine.Permanent(engine.CodeNoBranch, fmt.Errorf("no case applies, and there is no default"))
	}
	return engine.Output{Branch: r.otherwise}, nil
}

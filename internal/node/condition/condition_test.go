package condition

import (
	"strings"
	"testing"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node/nodetest"
)

func TestCondition(t *testing.T) {
	tests := []struct {
		config, payload, branch string
		code                    engine.Code
	}{
		{`{"expression": "payload.total > 100"}`, `{"total": 150.5}`, "true", ""},
		{`{"expression": "payload.total > 100"}`, `{"total": 100}`, "false", ""},
		{`{"expression": "steps.start.output.ok"}`, `{}`, "true", ""},
		{`{"expression": "payload.total > 100"}`, `{}`, "", engine.CodeExpressionFailed},
		{`{"expression": "payload.name"}`, `{"name": "x"}`, "", engine.CodeExpressionFailed},
	}
	for _, test := range tests {
		step, failure := nodetest.Run(t, nodetest.Case{
			Type: Type{}, Config: test.config, Payload: test.payload, StartOutput: `{"ok": true}`,
		})
		if failure == nil && test.code != "" || failure != nil && failure.Code != test.code || step.Branch != test.branch {
			t.Errorf("%s of %s: branch %q, %v", test.config, test.payload, step.Branch, failure)
		}
	}
}

func TestConditionFaults(t *testing.T) {
	for config, want := range map[string]string{
		`{}`:                                "expression: found nothing; allowed: a CEL expression that gives bool, such as payload.total > 100 (required)",
		`{"expression": 1}`:                 "expression: found a number; allowed: a string",
		`{"expression": "1"}`:               "expression: found an expression that gives int; allowed: one that gives bool",
		`{"expression": "x"}`:               "expression: found an expression that is not valid; allowed: CEL: undeclared reference to 'x'",
		`{"expression": "true", "then": 1}`: "then: found an unknown field; allowed: expression",
		`{"expression": "steps.nobody.outcome == 'x'"}`: "expression: found steps.nobody, which is no node; allowed: a step that lies before this one: start",
	} {
		// An edge without a branch is another mistake; it does not matter here.
		if got := nodetest.Faults(t, Type{}, config); !strings.HasPrefix(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", config, got, want)
		}
	}
}

func TestConditionNeedsBranches(t *testing.T) {
	types := engine.Registry{"start": Type{}, "condition": Type{}}
	_, err := engine.Compile(engine.Definition{
		Nodes: []engine.Node{
			{ID: "s", Type: "start", Config: []byte(`{"expression": "true"}`)}, {ID: "c", Type: "condition", Config: []byte(`{"expression": "true"}`)},
		},
		Edges: []engine.Edge{{From: "s", To: "c"}},
	}, types)
	if err == nil || !strings.Contains(err.Error(), `edges[0].branch: found no branch on an edge from "s" (start); allowed: true, false, error`) {
		t.Errorf("%v", err)
	}
}

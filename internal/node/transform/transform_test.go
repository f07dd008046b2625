package transform

import (
	"testing"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node/nodetest"
)

func TestTransform(t *testing.T) {
	tests := []struct {
		config, want string
		code         engine.Code
	}{
		{`{"output": {"number": "{{orderNumber}}", "total": "{{order.totalAmount}}", "id": "{{steps.start.output.id}}"}}`,
			`{"id":7,"number":"A-1","total":12.50}`, ""},
		{`{"output": "{{order}}"}`, `{"totalAmount":12.50}`, ""},
		{`{"output": null}`, ``, ""},
		{`{"expressions": {"twice": "payload.order.totalAmount * 2.0", "big": "payload.order.totalAmount > 100"}}`, `{"big":false,"twice":25}`, ""},
		{`{"output": {"n": "{{orderNumber}}"}, "expressions": {"x": "1 + 1"}}`, `{"n":"A-1","x":2}`, ""},
		{`{"output": "{{nothing}}"}`, ``, engine.CodePlaceholderUnset},
		{`{"expressions": {"x": "payload.nothing"}}`, ``, engine.CodeExpressionFailed},
	}
	for _, test := range tests {
		step, failure := nodetest.Run(t, nodetest.Case{
			Type: Type{}, Config: test.config, Payload: `{"orderNumber": "A-1", "order": {"totalAmount": 12.50}}`, StartOutput: `{"id": 7}`,
		})
		if failure == nil && test.code != "" || failure != nil && failure.Code != test.code || string(step.Output) != test.want {
			t.Errorf("%s: %s, %v", test.config, step.Output, failure)
		}
	}
}

func TestTransformFaults(t *testing.T) {
	for config, want := range map[string]string{
		`{}`: ": found neither output nor expressions; allowed: one of them, or both",
		`{"output": 1, "expressions": {"a": "1"}}`: "output: found a value that is no object, beside expressions; " +
			"allowed: an object: the expressions' values become fields of it",
		`{"output": {"a": "{{", "b": "{{x"}, "expressions": {"a": "(", "c d": "y"}}`: "expressions.a: found \"a\", a field of output too; allowed: each field once\n" +
			"expressions.a: found an expression that is not valid; allowed: CEL: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER} (column 2)\n" +
			"expressions[\"c d\"]: found an expression that is not valid; allowed: CEL: undeclared reference to 'y' (in container '') (column 1)\n" +
			"output.a: found the placeholder {{; allowed: after {{: a name; {{{{ stands for a literal {{\n" +
			"output.b: found the placeholder {{x; allowed: after {{x: '.', '[', '?' or '}}'",
		`{"output": "{{steps.n.output}}"}`: "output: found steps.n, which is not sure to have run before; allowed: a step that lies before this one: start",
	} {
		if got := nodetest.Faults(t, Type{}, config); got != want {
			t.Errorf("%s:\n got %s\nwant %s", config, got, want)
		}
	}
}

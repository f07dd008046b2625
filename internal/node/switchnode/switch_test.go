package switchnode

import (
	"testing"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node/nodetest"
)

const sizes = `"cases": [{"when": "payload.total >= 1000", "branch": "large"}, {"when": "payload.total >= 100", "branch": "middle"}]`

func TestSwitch(t *testing.T) {
	tests := []struct {
		config, payload, branch string
		code                    engine.Code
	}{
		{`{` + sizes + `, "default": "small"}`, `{"total": 1000}`, "large", ""},
		{`{` + sizes + `, "default": "small"}`, `{"total": 999.99}`, "middle", ""},
		{`{` + sizes + `, "default": "small"}`, `{"total": 1}`, "small", ""},
		{`{` + sizes + `, "default": "large"}`, `{"total": 1}`, "large", ""},
		{`{` + sizes + `}`, `{"total": 1}`, "", engine.CodeNoBranch},
		{`{` + sizes + `}`, `{}`, "", engine.CodeExpressionFailed},
	}
	for _, test := range tests {
		step, failure := nodetest.Run(t, nodetest.Case{Type: Type{}, Config: test.config, Payload: test.payload})
		if failure == nil && test.code != "" || failure != nil && failure.Code != test.code || step.Branch != test.branch {
			t.Errorf("%s of %s: branch %q, %v", test.config, test.payload, step.Branch, failure)
		}
	}
}

func TestSwitchFaults(t *testing.T) {
	for config, want := range map[string]string{
		`{}`:            "cases: found nothing; allowed: a list of {when, branch} (required)",
		`{"cases": []}`: "cases: found 0 elements; allowed: at least 1",
		`{"cases": [{"when": "1"}, {"branch": "b c"}], "default": "error"}`: "cases[0].branch: found nothing; allowed: a letter, then letters, digits, '_' or '-', at most 63 characters (required)\n" +
			"cases[0].when: found an expression that gives int; allowed: one that gives bool\n" +
			"cases[1].branch: found a string of 3 characters that does not fit; allowed: a letter, then letters, digits, '_' or '-', at most 63 characters\n" +
			"cases[1].when: found nothing; allowed: a CEL expression that gives bool (required)\n" +
			`default: found "error", which means something else; allowed: another name`,
		`{"cases": [{"when": "true", "branch": "success"}]}`: `cases[0].branch: found "success", which means something else; allowed: another name`,
		`{"cases": "all"}`: "cases: found a string; allowed: an array",
	} {
		if got := nodetest.Faults(t, Type{}, config); got != want {
			t.Errorf("%s:\n got %s\nwant %s", config, got, want)
		}
	}
}

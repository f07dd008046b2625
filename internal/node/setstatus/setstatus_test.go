package setstatus

import (
	"strings"
	"testing"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node/nodetest"
)

func TestSetStatus(t *testing.T) {
	tests := []struct {
		config string
		want   engine.StatusTag
		code   engine.Code
	}{
		{`{"statusTag": "success", "name": "Integrated with ERP", "phase": "order.post"}`,
			engine.StatusTag{Phase: "order.post", Tag: "success", Name: "Integrated with ERP", At: nodetest.Now}, ""},
		{`{"statusTag": "{{tag}}", "name": "ERP {{event.orgId}}"}`, engine.StatusTag{Tag: "ok", Name: "ERP acme", At: nodetest.Now}, ""},
		{`{"statusTag": "x", "name": "{{long}}"}`, engine.StatusTag{}, engine.CodeOutputTooLarge},
		{`{"statusTag": "x", "name": "{{lines}}"}`, engine.StatusTag{}, engine.CodeInvalidRequest},
		{`{"statusTag": "{{nothing?}}"}`, engine.StatusTag{}, engine.CodeInvalidRequest},
		{`{"statusTag": "{{nothing}}"}`, engine.StatusTag{}, engine.CodePlaceholderUnset},
	}
	payload := `{"tag": "ok", "lines": "a\nb", "long": "` + strings.Repeat("x", 300) + `"}`
	for _, test := range tests {
		step, failure := nodetest.Run(t, nodetest.Case{Type: Type{}, Config: test.config, Payload: payload})
		if test.code != "" {
			if failure == nil || failure.Code != test.code || len(step.Tags) > 0 {
				t.Errorf("%s: %v, %v", test.config, step.Tags, failure)
			}
			continue
		}
		if failure != nil || len(step.Tags) != 1 || step.Tags[0] != test.want {
			t.Errorf("%s: %+v, %v", test.config, step.Tags, failure)
		}
	}
}

func TestSetStatusFaults(t *testing.T) {
	for config, want := range map[string]string{
		`{"name": "x", "statustag": "y"}`: "statusTag: found nothing; allowed: the status, such as success; may have placeholders (required)\n" +
			`statustag: found an unknown field (did you mean "statusTag"?); allowed: name, phase, statusTag`,
		`{"statusTag": "{{a"}`: "statusTag: found the placeholder {{a; allowed: after {{a: '.', '[', '?' or '}}'",
	} {
		if got := nodetest.Faults(t, Type{}, config); got != want {
			t.Errorf("%s:\n got %s\nwant %s", config, got, want)
		}
	}
}

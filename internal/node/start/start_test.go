package start

import (
	"testing"

	"github.com/relayops/relayops/internal/engine"
)

func TestStart(t *testing.T) {
	types := engine.Registry{engine.TypeStart: Type{}}
	for config, fault := range map[string]string{
		``: "", `null`: "", `{}`: "", `{"a": 1}`: `nodes[0].config.a (node "s"): found an unknown field; allowed: none`,
		`[]`: `nodes[0].config (node "s"): found an array; allowed: an object`,
	} {
		graph, err := engine.Compile(engine.Definition{Nodes: []engine.Node{{ID: "s", Type: "start", Config: []byte(config)}}}, types)
		if err != nil {
			if err.Error() != fault {
				t.Errorf("%s: %v, want %s", config, err, fault)
			}
			continue
		}
		if fault != "" {
			t.Errorf("%s: no error", config)
		}
		result, err := graph.Run(t.Context(), engine.Execution{}, engine.Runtime{})
		if err != nil || result.Outcome != engine.Succeeded || len(result.Pending) != 1 || result.Pending[0].Output != nil {
			t.Errorf("%+v, %v", result, err)
		}
	}
}

package node

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/relayops/relayops/internal/engine"
)

// The examples of docs/pipelines.md are pipelines, or nodes, that compile; every type has one.
func TestExamplesOfTheDocumentationCompile(t *testing.T) {
	page, err := os.ReadFile("../../docs/pipelines.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		text := strings.TrimSpace(block[1])
		if !strings.Contains(text, `"nodes"`) {
			var example engine.Node
			if err := json.Unmarshal([]byte(text), &example); err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			shown[example.Type] = true
			if example.Type == engine.TypeStart {
				text = `{"nodes": [` + text + `]}`
			} else {
				text = `{"nodes": [{"id": "begin", "type": "start"}, ` + text + `], "edges": [{"from": "begin", "to": "` + example.ID + `"}]}`
			}
		}
		def, err := engine.ParseDefinition([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if _, err := engine.Compile(def, Types()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for name := range Types() {
		if !shown[name] {
			t.Errorf("no example of %s", name)
		}
		if !strings.Contains(string(page), "\n### "+name+"\n") {
			t.Errorf("no section on %s", name)
		}
	}
}

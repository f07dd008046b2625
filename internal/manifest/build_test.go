package manifest

import (
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const minimalRelay = `
apiVersion: relayops.io/v1alpha1
kind: OutboxRelay
metadata: {name: orders}
spec:
  database: {urlSecretRef: {name: db, key: url}}
  nats: {url: "nats://nats:4222"}
`

const minimalPipeline = `
apiVersion: relayops.io/v1alpha1
kind: Pipeline
metadata: {name: order-post}
spec:
  relayRef: {name: orders}
  trigger: order.post
  nodes: [{id: start, type: start}]
`

// object parses a document.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var parsed map[string]any
	if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

// with is a document with one field set to a value in YAML; steps of the path are separated by slashes, and made where
// they are missing.
func with(t *testing.T, text, path, value string) string {
	t.Helper()
	root := object(t, text)
	var parsed any
	if err := yaml.Unmarshal([]byte(value), &parsed); err != nil {
		t.Fatal(err)
	}
	var at any = root
	steps := strings.Split(path, "/")
	for i, step := range steps {
		last := i == len(steps)-1
		switch parent := at.(type) {
		case map[string]any:
			if last {
				parent[step] = parsed
			} else if parent[step] == nil {
				parent[step] = map[string]any{}
			}
			at = parent[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil {
				t.Fatal(err)
			}
			if last {
				parent[n] = parsed
			}
			at = parent[n]
		}
	}
	out, err := yaml.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func read(text string) (Set, Problems) { return Read("test.yaml", strings.NewReader(text)) }

// brief is a problem without file, line and object.
func brief(p Problem) string {
	p.File, p.Line, p.Object = "", 0, ""
	return p.String()
}

func briefs(problems Problems) string {
	lines := make([]string, len(problems))
	for i, one := range problems {
		lines[i] = brief(one)
	}
	return strings.Join(lines, "\n")
}

package manifest

import (
	"bytes"
	"os"
	"testing"

	"sigs.k8s.io/yaml"
)

// FuzzLoad: whatever stands in a file, reading it ends without a crash, each problem says what was found and what is
// allowed, and what had no problem has none when it is written and read again.
func FuzzLoad(f *testing.F) {
	for _, one := range texts {
		f.Add([]byte(one.text))
	}
	mistakes, err := os.ReadFile("testdata/mistakes.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(mistakes)
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("? {a: b}\n: c\n"))
	f.Add([]byte("<<: {kind: a}\n"))
	f.Add([]byte(minimalPipeline + "  edges: [{from: start, to: 1.0e400}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		set, problems := Read("fuzz", bytes.NewReader(text))
		for _, problem := range problems {
			if problem.Found == "" || problem.Allowed == "" || problem.File != "fuzz" {
				t.Errorf("found the problem %+v; want one that says what was found and what is allowed", problem)
			}
		}
		if len(problems) > 0 {
			return
		}
		var written []byte
		for _, relay := range set.Relays {
			written = appendDocument(t, written, relay.Object)
		}
		for _, pipeline := range set.Pipelines {
			written = appendDocument(t, written, pipeline.Object)
		}
		if _, problems := Read("again", bytes.NewReader(written)); len(problems) > 0 {
			t.Errorf("found %v in what was written again:\n%s", problems, written)
		}
	})
}

func appendDocument(t *testing.T, text []byte, object any) []byte {
	t.Helper()
	document, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return append(append(text, "---\n"...), document...)
}

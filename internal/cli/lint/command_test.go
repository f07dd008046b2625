package lint_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/relayops/relayops/internal/cli/lint"
)

// run gives what the command prints, and its error: the program's exit status is 1 where there is one.
func run(stdin string, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd := lint.New()
	cmd.SilenceErrors = true
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	err = cmd.Execute()
	return out.String(), errs.String(), err
}

const samples = "../../../config/samples"

func TestSamplesHaveNoMistake(t *testing.T) {
	stdout, stderr, err := run("", "-f", samples)
	want := "OutboxRelay default/default/orders: no mistake\nPipeline default/default/order-post: no mistake\n"
	if err != nil || stdout != want {
		t.Errorf("found %q, %q, %v; want %q", stdout, stderr, err, want)
	}
	if !strings.Contains(stderr, "kustomization.yaml: skipped") {
		t.Errorf("found %q; want a note of the kustomization", stderr)
	}
}

const faulty = `apiVersion: relayops.io/v1alpha1
kind: Pipeline
metadata: {name: order-post}
spec:
  relayRef: {name: orders}
  trigger: order.post
  concurrency: 0
  nodes:
    - {id: start, type: start}
    - {id: notify, type: http-reqest}
  edges:
    - {from: start, to: notify}
`

// Mistakes of the schema and of the graph come together, in the order of their lines.
func TestMistakes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pipeline.yaml")
	if err := os.WriteFile(file, []byte(faulty), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := run("", "-f", file)
	if err == nil || err.Error() != "found 3 mistakes" || stdout != "" {
		t.Errorf("found %q and the error %v; want nothing and 3 mistakes", stdout, err)
	}
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	for i, want := range []string{
		`:5: Pipeline default/order-post: spec.relayRef.name: found "orders", which does not exist; allowed: an OutboxRelay`,
		":7: Pipeline default/order-post: spec.concurrency: found 0; allowed: an integer of 1 to 1000",
		`:10: Pipeline default/order-post: spec.nodes[1].type: found "http-reqest"`,
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], file+want) {
			t.Fatalf("found\n%s\nwant line %d to begin with %s", stderr, i+1, file+want)
		}
	}
}

func TestJSON(t *testing.T) {
	relay, err := os.ReadFile(samples + "/outboxrelay.yaml")
	if err != nil {
		t.Fatal(err)
	}
	stdout, _, err := run(string(relay)+"---\n"+faulty, "-f", "-", "-o", "json")
	if err == nil {
		t.Error("found no error; want one for the exit status")
	}
	var report lint.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	if len(report.Objects) != 1 || len(report.Problems) != 2 || report.Problems[0].Field != "spec.concurrency" ||
		report.Problems[0].File != "-" || report.Problems[0].Line == 0 {
		t.Errorf("found %+v; want one good object and two problems with their places", report)
	}
}

// What a file and standard input say belongs together.
func TestFilesAndStandardInput(t *testing.T) {
	pipeline, err := os.ReadFile(samples + "/pipeline.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, stderr, err := run(string(pipeline), "-f", samples+"/outboxrelay.yaml", "-f", "-"); err != nil {
		t.Errorf("found %v, %s; want no mistake", err, stderr)
	}
}

func TestUse(t *testing.T) {
	if _, _, err := run(""); err == nil || !strings.Contains(err.Error(), "filename") {
		t.Errorf("found %v; want an error that names the flag", err)
	}
	if _, stderr, err := run("", "-f", "missing.yaml"); err == nil ||
		!strings.Contains(stderr, "missing.yaml: found an error: no such file or directory") {
		t.Errorf("found %v, %s; want the missing file named", err, stderr)
	}
}

// The output in the documentation is what the command prints.
func TestDocumentedOutput(t *testing.T) {
	t.Chdir("testdata")
	_, stderr, err := run("", "-f", "orders.yaml")
	if err == nil {
		t.Fatal("found no error")
	}
	text, err2 := os.ReadFile("../../../../docs/manifests.md")
	if err2 != nil {
		t.Fatal(err2)
	}
	input, err2 := os.ReadFile("orders.yaml")
	if err2 != nil {
		t.Fatal(err2)
	}
	printed := "$ relayops lint -f orders.yaml\n" + stderr + "relayops: " + err.Error() + "\n"
	for _, want := range []string{printed, string(input)} {
		if !strings.Contains(string(text), want) {
			t.Errorf("docs/manifests.md: found no\n%s", want)
		}
	}
}

package manifest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/relayops/relayops/api/v1alpha1"
)

// Each text gives exactly the problems: none, or their brief form.
var texts = []struct{ name, text, want string }{
	{"empty", "", ""},
	{"comments", "# nothing\n---\n# at all\n...\n---\n", ""},
	{"null", "null\n---\n~\n", ""},
	{"byte order mark", "\ufeff" + strings.TrimSpace(minimalRelay), ""},
	{"Windows line ends", strings.ReplaceAll(minimalRelay+"---\n"+minimalPipeline, "\n", "\r\n"), ""},
	{"separator with a comment", minimalRelay + "--- # next\n" + minimalPipeline, ""},
	{"JSON", `{"apiVersion":"relayops.io/v1alpha1","kind":"Pipeline","metadata":{"name":"a"},` +
		`"spec":{"relayRef":{"name":"r"},"trigger":"order.post","nodes":[{"id":"start","type":"start"}]}}`, ""},
	{"anchors", minimalPipeline + "  edges: &e []\n  orgs: *e\n", ""},
	{"document end", minimalRelay + "...\n" + minimalPipeline, ""},
	{"text beside a separator", minimalRelay + "--- {a: b}\n",
		`found "{a: b}" beside "---"; allowed: nothing but a comment on the line that separates documents`},
	{"not UTF-8", "a: \xff\xfe", "found bytes that are not UTF-8; allowed: YAML or JSON in UTF-8"},
	{"tab", "a:\n\tb: c\n", "found no YAML: found character that cannot start any token; allowed: one YAML or JSON object, each key once"},
	{"duplicate key", "kind: a\nkind: b\n",
		`found the key "kind" twice in one object; allowed: one YAML or JSON object, each key once`},
	{"unknown anchor", "a: *b\n", "found no YAML: unknown anchor 'b' referenced; allowed: one YAML or JSON object, each key once"},
	{"not a number of JSON", "a: .nan\n", "found no YAML: json: unsupported value: NaN; allowed: one YAML or JSON object, each key once"},
	{"a list", "- a\n- b\n", "found a list of 2; allowed: an object with apiVersion and kind"},
	{"a scalar", "hello\n", "found a string; allowed: an object with apiVersion and kind"},
	{"no kind", "apiVersion: v1\n", "kind: found nothing; allowed: a string, such as Pipeline"},
	{"bad apiVersion", "apiVersion: a/b/c\nkind: Pipeline\n", `apiVersion: found "a/b/c"; allowed: group/version, such as relayops.io/v1alpha1`},
	{"other version", "apiVersion: relayops.io/v1\nkind: Pipeline\n", `apiVersion: found "relayops.io/v1"; allowed: relayops.io/v1alpha1`},
	{"other kind", "apiVersion: relayops.io/v1alpha1\nkind: PipeLine\n", `kind: found "PipeLine"; allowed: OutboxRelay or Pipeline`},
	{"foreign group", "apiVersion: apps/v1\nkind: Deployment\nspec: {anything: goes}\n", ""},
	{"no name", strings.Replace(minimalPipeline, "{name: order-post}", "{}", 1),
		"metadata.name: found nothing; allowed: a name of lower-case letters, digits, '-' and '.'"},
	{"metadata of the wrong type", strings.Replace(minimalPipeline, "{name: order-post}", "{name: 7}", 1),
		"metadata: found json: cannot unmarshal number into Go struct field ObjectMeta.name of type string; allowed: the standard metadata of an object"},
	{"unknown field", minimalPipeline + "  replica: 3\n",
		"spec.replica: found a field that does not exist; allowed: concurrency, deadline, deletionPolicy, edges, http, nodes, orgs, " +
			"pipelineTimeout, podTemplate, relayRef, replicas, retry, startFrom, startTime, stepTimeout, suspend or trigger"},
	{"unknown field of a node", minimalPipeline + "  edges: [{from: start, to: start, onerror: abort}]\n",
		"spec.edges[0].onerror: found a field that does not exist; allowed: branch, from or to"},
	{"unknown field at the top", minimalPipeline + "stauts: {}\n", "stauts: found a field that does not exist; allowed: apiVersion, kind, metadata, spec or status"},
	{"no spec", "apiVersion: relayops.io/v1alpha1\nkind: Pipeline\nmetadata: {name: a}\n", "spec: found nothing; allowed: an object with nodes, relayRef, trigger"},
	{"wrong type", minimalPipeline + "  concurrency: four\n", `spec.concurrency: found "four"; allowed: an integer of 1 to 1000`},
	{"a string for a list", minimalPipeline + "  orgs: acme\n", `spec.orgs: found "acme"; allowed: a list of at most 256 items`},
	{"the same organisation twice", minimalPipeline + "  orgs: [acme, acme]\n", `spec.orgs[1]: found "acme" a second time; allowed: each once`},
	{"bad enum", minimalPipeline + "  startFrom: Later\n", `spec.startFrom: found "Later"; allowed: Now, Beginning or Time`},
	{"bad time", minimalPipeline + "  startFrom: Time\n  startTime: yesterday\n", `spec.startTime: found "yesterday"; allowed: a time, such as 2026-01-31T12:00:00Z`},
	{"config that is no object", minimalPipeline[:len(minimalPipeline)-3] + ", config: [1]}]\n", `spec.nodes[0].config: found a list of 1; allowed: an object`},
	{"null for a default", minimalPipeline + "  concurrency: null\n", ""},
	{"a status is dropped, as by the API server", minimalPipeline + "status: {replicas: x}\n", ""},
	{"a List", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret}\n- 7\n", "found 7; allowed: an object"},
	{"a List in a List", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: List, items: []}\n", "items: found a List in a List; allowed: objects"},
	{"a List of nothing", "apiVersion: v1\nkind: List\n", "items: found nothing; allowed: a list of objects"},
	{"the same object twice", minimalPipeline + "---\n" + minimalPipeline,
		"metadata.name: found the name of an object in document 1 too; allowed: one object of a kind, namespace and name"},
}

func TestTexts(t *testing.T) {
	for _, one := range texts {
		t.Run(one.name, func(t *testing.T) {
			_, problems := read(one.text)
			if got := briefs(problems); got != one.want {
				t.Errorf("found\n%s\nwant\n%s", got, one.want)
			}
		})
	}
}

func TestLines(t *testing.T) {
	text := "# a comment\n---" + minimalRelay + "---\napiVersion: relayops.io/v1alpha1\nkind: Pipeline\nmetadata:\n" +
		"  name: a\nspec:\n  relayRef: {name: r}\n  trigger: t\n  nodes:\n    - id: start\n      type: start\n    - id: b\n" +
		"      type: BAD\n"
	_, problems := read(text)
	if len(problems) != 1 {
		t.Fatal(problems)
	}
	before, _, _ := strings.Cut(text, "type: BAD")
	line := 1 + strings.Count(before, "\n")
	want := fmt.Sprintf("test.yaml:%d: Pipeline default/a: spec.nodes[1].type: found \"BAD\"; allowed: a string of 1 to "+
		"63 characters that matches ^[a-z][a-z0-9-]*$", line)
	if got := problems.Error(); got != want {
		t.Errorf("found\n%s\nwant\n%s", got, want)
	}
}

// Credentials that someone wrote into a URL are not repeated.
func TestCredentialsAreNotRepeated(t *testing.T) {
	_, problems := read(with(t, minimalRelay, "spec/nats/url", "nats://user:s3cr/et@nats:4222"))
	if got := problems.Error(); len(problems) != 1 || strings.Contains(got, "s3cr") || !strings.Contains(got, "nats://…@nats:4222") {
		t.Errorf("found %s", got)
	}
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "relay.yaml"), minimalRelay)
	write(t, filepath.Join(dir, "pipeline.yml"), minimalPipeline)
	write(t, filepath.Join(dir, "kustomization.yaml"), "resources: [relay.yaml]\n")
	write(t, filepath.Join(dir, "README.md"), "no manifest")
	write(t, filepath.Join(dir, ".hidden.yaml"), "- no manifest")
	if err := os.Mkdir(filepath.Join(dir, "more.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	target := write(t, filepath.Join(t.TempDir(), "elsewhere"), strings.Replace(minimalPipeline, "order-post", "other", 1))
	if err := os.Symlink(target, filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	set, problems := Load(dir)
	if len(problems) > 0 || len(set.Relays) != 1 || len(set.Pipelines) != 2 || len(set.Notes) != 2 {
		t.Errorf("found %d relays, %d pipelines, notes %v, problems %v; want 1, 2, 2 notes and none",
			len(set.Relays), len(set.Pipelines), set.Notes, problems)
	}
	if set.Pipelines[0].File != filepath.Join(dir, "link.yaml") {
		t.Errorf("found the first pipeline in %s; want the files in the order of their names", set.Pipelines[0].File)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "broken.yaml")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "huge.yaml"), "a: "+strings.Repeat("x", MaxFileBytes))
	_, problems := Load(dir, filepath.Join(dir, "missing.yaml"))
	text := problems.Error()
	for _, want := range []string{
		"broken.yaml: found an error: no such file or directory",
		"huge.yaml: found more than 4194304 bytes; allowed: at most 4194304",
		"pipe.yaml: found a special file; allowed: a regular file or a directory",
		"missing.yaml: found an error: no such file or directory; allowed: a readable file or directory",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("found\n%s\nwant %s in it", text, want)
		}
	}
	if len(problems) != 4 {
		t.Errorf("found %d problems, want 4", len(problems))
	}
}

func TestNothingToLoad(t *testing.T) {
	if _, problems := Load(t.TempDir()); len(problems) != 1 || !strings.Contains(problems.Error(), "found no manifest") {
		t.Errorf("found %v; want a problem that says so", problems)
	}
}

// An alias that stands for itself many times over is refused, and quickly.
func TestAliasBomb(t *testing.T) {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 10; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	began := time.Now()
	_, problems := read(text)
	if len(problems) != 1 || !strings.Contains(problems.Error(), "excessive aliasing") {
		t.Errorf("found %.300v; want one problem that names the aliases", problems)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
}

// graph is a pipeline with many nodes in a chain, and as many edges as are asked for.
func graph(nodes, edges int) string {
	var b bytes.Buffer
	b.WriteString(strings.Replace(minimalPipeline, "  nodes: [{id: start, type: start}]\n", "  nodes:\n  - {id: start, type: start}\n", 1))
	id := func(i int) string { return fmt.Sprintf("%s-%04d", strings.Repeat("n", 58), i) }
	for i := 1; i < nodes; i++ {
		fmt.Fprintf(&b, "  - {id: %s, type: set-status, timeout: 1m, config: {statusTag: s}}\n", id(i))
	}
	b.WriteString("  edges:\n")
	for i := range edges {
		fmt.Fprintf(&b, "  - {from: %s, to: %s}\n", id(1+i%(nodes-1)), id(1+(i+1)%(nodes-1)))
	}
	return b.String()
}

// The largest graph is within the API server's budget for rules; larger ones are refused with one line.
func TestLargeGraphs(t *testing.T) {
	for _, one := range []struct {
		nodes, edges int
		want         string
	}{
		{256, 1024, ""},
		{500, 499, "spec.nodes: found 500 items; allowed: a list of 1 to 256 items"},
		{10000, 10000, "spec.nodes: found 10000 items; allowed: a list of 1 to 256 items\n" +
			"spec.edges: found 10000 items; allowed: a list of at most 1024 items"},
	} {
		began := time.Now()
		text := graph(one.nodes, one.edges)
		if one.want != "" {
			text = strings.ReplaceAll(text, "type: set-status", "type: BAD") // what stands in it is not looked at
		}
		_, problems := read(text)
		if got := briefs(problems); got != one.want {
			t.Errorf("%d nodes: found\n%.2000s\nwant\n%s", one.nodes, got, one.want)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%d nodes took %s", one.nodes, took)
		}
	}
}

func TestMistakesAreBounded(t *testing.T) {
	text := strings.ReplaceAll(graph(250, 1), "type: set-status", "type: SET")
	_, problems := read(text)
	last := problems[len(problems)-1]
	if len(problems) != maxProblems+1 || last.Found != "149 more mistakes" {
		t.Errorf("found %d problems, the last %s; want %d and a word of the rest", len(problems), last, maxProblems+1)
	}
}

// Typed objects say the same when they are written and read again.
func TestRoundTrip(t *testing.T) {
	set, problems := Load("../../config/samples")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var text []byte
	for _, object := range []any{set.Relays[0].Object, set.Pipelines[0].Object} {
		document, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, "---\n"...), document...)
	}
	again, problems := read(string(text))
	if len(problems) > 0 {
		t.Fatalf("%v in\n%s", problems, text)
	}
	for i, pair := range [][2]any{
		{set.Relays[0].Object, again.Relays[0].Object}, {set.Pipelines[0].Object, again.Pipelines[0].Object},
	} {
		first, err := yaml.Marshal(pair[0])
		if err != nil {
			t.Fatal(err)
		}
		second, err := yaml.Marshal(pair[1])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, second) {
			t.Errorf("object %d: found\n%s\nwant\n%s", i, second, first)
		}
	}
}

// The graph of the platform that users come from, in its own JSON.
const ordersGraph = `{ "nodes": [
    { "id": "start", "type": "start" },
    { "id": "notify", "type": "http-request",
      "config": { "method": "POST", "url": "https://erp.example.com/orders",
                  "body": { "number": "{{orderNumber}}", "total": "{{order.totalAmount}}" } },
      "onError": "abort" },
    { "id": "ok", "type": "set-status",
      "config": { "statusTag": "success", "name": "Integrated with ERP", "phase": "order.post" } } ],
  "edges": [ { "from": "start", "to": "notify" }, { "from": "notify", "to": "ok", "branch": "success" } ] }`

func TestExistingGraphRunsUnchanged(t *testing.T) {
	spec := strings.TrimSpace(ordersGraph)
	text := `{"apiVersion":"relayops.io/v1alpha1","kind":"Pipeline","metadata":{"name":"order-post"},
		"spec":{"relayRef":{"name":"orders"},"trigger":"order.post",` + spec[1:] + "}"
	set, problems := read(text)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	pipeline := set.Pipelines[0].Object
	if len(pipeline.Spec.Nodes) != 3 || len(pipeline.Spec.Edges) != 2 ||
		string(pipeline.Spec.Nodes[2].Config.Raw) != `{"name":"Integrated with ERP","phase":"order.post","statusTag":"success"}` ||
		pipeline.Spec.Nodes[1].OnError != v1alpha1.OnErrorAbort {
		t.Errorf("found %+v", pipeline.Spec)
	}
}

package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each pipeline has mistakes; all of them are reported at once, with place, found and allowed.
func TestCompileReportsEveryMistake(t *testing.T) {
	tests := []struct {
		name, def string
		want      []string
	}{
		{"nothing", `{}`, []string{
			`nodes: found no node of type start; allowed: exactly one`,
		}},
		{"two starts", `{"nodes":[{"id":"a","type":"start"},{"id":"b","type":"start"}]}`, []string{
			`nodes: found 2 nodes of type start: a, b; allowed: exactly one`,
		}},
		{"types and ids", `{"nodes":[{"id":"s","type":"start"},{"id":"1st","type":"pure"},{"id":"s","type":"extrenal"},{"id":"","type":""}],
			"edges":[{"from":"s","to":"1st"}]}`, []string{
			`nodes[1].id (node "1st"): found "1st"; allowed: a letter, then letters, digits, '_' or '-', at most 63 characters`,
			`nodes[2].id (node "s"): found "s", the id of nodes[0] too; allowed: an id of its own`,
			`nodes[2].type (node "s"): found "extrenal" (did you mean "external"?); allowed: external, pure, start, stored`,
			`nodes[3].id: found ""; allowed: a letter, then letters, digits, '_' or '-', at most 63 characters`,
			`nodes[3].type: found ""; allowed: external, pure, start, stored`,
			`nodes[2] (node "s"): found a node that no path from the start leads to; allowed: a node with an edge that leads to it`,
			`nodes[3]: found a node that no path from the start leads to; allowed: a node with an edge that leads to it`,
		}},
		{"a long id is clipped", fmt.Sprintf(`{"nodes":[{"id":"s","type":"start"},{"id":%q,"type":"pure"}],"edges":[{"from":"s","to":%q}]}`,
			strings.Repeat("x", 100), strings.Repeat("x", 100)), []string{
			fmt.Sprintf(`nodes[1].id (node "%[1]s…"): found "%[1]s…"; allowed: a letter, then letters, digits, '_' or '-', at most 63 characters`,
				strings.Repeat("x", 64)),
		}},
		{"edges", `{"nodes":[{"id":"start","type":"start"},{"id":"notify","type":"pure"},{"id":"ask","type":"pure","config":{"branches":["true","false"]}}],
			"edges":[{"from":"start","to":"notify"},{"from":"start","to":"notify","branch":"success"},{"from":"notify","to":"ask"},
			{"from":"notify","to":"notfy"},{"from":"nobody","to":"ask"},{"from":"ask","to":"ask","branch":"true"},
			{"from":"notify","to":"start"},{"from":"ask","to":"notify"},{"from":"notify","to":"ask","branch":"succes"}]}`, []string{
			`edges[1]: found the same edge as edges[0]; allowed: each edge once`,
			`edges[3].to: found "notfy", which is no node (did you mean "notify"?); allowed: a node's id: start, notify, ask`,
			`edges[4].from: found "nobody", which is no node; allowed: a node's id: start, notify, ask`,
			`edges[5]: found an edge from "ask" to itself; allowed: an edge to another node`,
			`edges[6].to: found "start", a start node; allowed: a node other than start: a pipeline begins there`,
			`edges[7].branch: found no branch on an edge from "ask" (pure); allowed: true, false, error`,
			`edges[8].branch: found "succes" (did you mean "success"?); allowed: success, error`,
			`edges: found a cycle: notify → ask → notify; allowed: a graph without cycles`,
		}},
		{"a cycle", `{"nodes":[{"id":"s","type":"start"},{"id":"a","type":"pure"},{"id":"b","type":"pure"},{"id":"c","type":"pure"},{"id":"d","type":"pure"},{"id":"e","type":"pure"}],
			"edges":[{"from":"s","to":"a"},{"from":"a","to":"b"},{"from":"b","to":"c"},{"from":"c","to":"a"},{"from":"d","to":"e"},{"from":"e","to":"d"}]}`, []string{
			`edges: found a cycle: a → b → c → a; allowed: a graph without cycles`,
			`edges: found a cycle: d → e → d; allowed: a graph without cycles`,
			`nodes[4] (node "d"): found a node that no path from the start leads to; allowed: a node with an edge that leads to it`,
			`nodes[5] (node "e"): found a node that no path from the start leads to; allowed: a node with an edge that leads to it`,
		}},
		{"a node's fields", `{"nodes":[{"id":"s","type":"start"},{"id":"a","type":"pure","onError":"ignore","timeout":"2h",
			"classify":[{"as":"retry"},{"httpStatus":"44","as":"drop"},{"code":"timeuot","as":"cancel"},{"httpStatus":"6xx","code":"max_attempts_exceeded","as":""}]}],
			"edges":[{"from":"s","to":"a"}]}`, []string{
			`nodes[1].onError (node "a"): found "ignore"; allowed: "abort", "continue", or an edge with branch "error"`,
			`nodes[1].timeout (node "a"): found 2h0m0s; allowed: from 1ms to 1h0m0s`,
			`nodes[1].classify[0] (node "a"): found neither httpStatus nor code; allowed: at least one of them`,
			`nodes[1].classify[1].httpStatus (node "a"): found "44"; allowed: a status such as "404", or a hundred such as "5xx"`,
			`nodes[1].classify[1].as (node "a"): found "drop"; allowed: "retry", "dead_letter" or "cancel"`,
			`nodes[1].classify[2].code (node "a"): found "timeuot" (did you mean "timeout"?); allowed: CODES`,
			`nodes[1].classify[3].httpStatus (node "a"): found "6xx"; allowed: a status such as "404", or a hundred such as "5xx"`,
			`nodes[1].classify[3].code (node "a"): found "max_attempts_exceeded"; allowed: CODES`,
			`nodes[1].classify[3].as (node "a"): found ""; allowed: "retry", "dead_letter" or "cancel"`,
		}},
		{"onError and edges", `{"nodes":[{"id":"s","type":"start"},{"id":"a","type":"pure","onError":"continue"},
			{"id":"b","type":"pure","onError":"continue","config":{"branches":["true"]}}],
			"edges":[{"from":"s","to":"a"},{"from":"a","to":"b","branch":"error"}]}`, []string{
			`nodes[2].onError (node "b"): found "continue" on a node without a branch "success" to continue on; allowed: "abort", or an edge with branch "error"`,
			`nodes[1].onError (node "a"): found "continue" beside an edge with branch "error"; allowed: one of the two`,
		}},
		{"configs", `{"nodes":[{"id":"s","type":"start"},{"id":"a","type":"pure","config":{"branchs":["x"],"reads":["s",3],"secret word":"hunter2"}},
			{"id":"b","type":"pure","config":[]},{"id":"c","type":"pure","config":{"branches":"hunter2"}}],
			"edges":[{"from":"s","to":"a"},{"from":"s","to":"b"},{"from":"s","to":"c"}]}`, []string{
			`nodes[1].config["secret word"] (node "a"): found an unknown field; allowed: branches, reads`,
			`nodes[1].config.branchs (node "a"): found an unknown field (did you mean "branches"?); allowed: branches, reads`,
			`nodes[1].config.reads[1] (node "a"): found a number; allowed: a string`,
			`nodes[2].config (node "b"): found an array; allowed: an object`,
			`nodes[3].config.branches (node "c"): found a string; allowed: an array`,
		}},
		{"reads", `{"nodes":[{"id":"s","type":"start"},{"id":"a","type":"pure","config":{"reads":["b","nope","a"]}},{"id":"b","type":"pure","config":{"reads":["a","s"]}},
			{"id":"side","type":"pure","config":{"reads":["a"]}}],
			"edges":[{"from":"s","to":"a"},{"from":"a","to":"b"},{"from":"s","to":"side"}]}`, []string{
			`nodes[1].config.reads (node "a"): found steps.b, which is not sure to have run before; allowed: a step that lies before this one: s`,
			`nodes[1].config.reads (node "a"): found steps.nope, which is no node; allowed: a step that lies before this one: s`,
			`nodes[1].config.reads (node "a"): found steps.a, which is not sure to have run before; allowed: a step that lies before this one: s`,
			`nodes[3].config.reads (node "side"): found steps.a, which is not sure to have run before; allowed: a step that lies before this one: s`,
		}},
		{"a deep config", `{"nodes":[{"id":"s","type":"start","config":` + strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40) + `}]}`, []string{
			`nodes[0].config (node "s"): found a document that is too deep, or has a number that is too long; allowed: at most 32 levels, numbers of at most 1000 digits`,
		}},
		{"a long number", `{"nodes":[{"id":"s","type":"start","config":{"a":1e999999999}}]}`, []string{
			`nodes[0].config (node "s"): found a document that is too deep, or has a number that is too long; allowed: at most 32 levels, numbers of at most 1000 digits`,
		}},
		{"a large config", `{"nodes":[{"id":"s","type":"start","config":{"a":"` + strings.Repeat("x", MaxConfigBytes) + `"}}]}`, []string{
			`nodes[0].config (node "s"): found 65544 bytes; allowed: at most 65536`,
		}},
	}
	var codes []string
	for _, code := range stepCodes {
		codes = append(codes, string(code))
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			def, err := ParseDefinition([]byte(test.def))
			if err != nil {
				t.Fatal(err)
			}
			types, _ := fakes(nil)
			for range 3 { // The order is the same each time.
				_, err = Compile(def, types)
				var found FieldErrors
				if !errors.As(err, &found) {
					t.Fatalf("error %v, want FieldErrors", err)
				}
				got := strings.Split(strings.ReplaceAll(found.Error(), strings.Join(codes, ", "), "CODES"), "\n")
				if !slices.Equal(got, test.want) {
					t.Fatalf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
				}
			}
		})
	}
}

func TestCompileRefusesAGraphBeyondTheLimits(t *testing.T) {
	def := chain()
	for i := range 499 {
		def.Nodes = append(def.Nodes, Node{ID: fmt.Sprint("n", i), Type: "no-such-type"})
	}
	def.Edges = make([]Edge, 1025)
	types, _ := fakes(nil)
	began := time.Now()
	_, err := Compile(def, types)
	want := "nodes: found 500 nodes; allowed: at most 256\nedges: found 1025 edges; allowed: at most 1024"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %s", took)
	}
}

func TestCompileTakesTheLargestGraph(t *testing.T) {
	def := chain()
	for i := range MaxNodes - 1 {
		def.Nodes = append(def.Nodes, Node{ID: fmt.Sprint("n", i), Type: "pure", Config: json.RawMessage(`{"reads":["start"]}`)})
		def.Edges = append(def.Edges, Edge{From: "start", To: fmt.Sprint("n", i)})
	}
	for i := 0; len(def.Edges) < MaxEdges; i++ {
		from, to := i%128, 128+(i*7+i/128)%127
		edge := Edge{From: fmt.Sprint("n", from), To: fmt.Sprint("n", to)}
		if !slices.Contains(def.Edges, edge) {
			def.Edges = append(def.Edges, edge)
		}
	}
	types, _ := fakes(nil)
	result, err := mustCompile(t, def, types).Run(t.Context(), someExecution(), Runtime{Parallelism: 8})
	if err != nil || result.Outcome != Succeeded || len(result.Pending) != MaxNodes {
		t.Errorf("%s, %d steps, %v", result.Outcome, len(result.Pending), err)
	}
}

func TestParseDefinition(t *testing.T) {
	for text, want := range map[string]string{
		`{"nodes":[]} {}`:                    "more text",
		`{"node":[]}`:                        `unknown field "node"`,
		`{"nodes":[{"timeout":"soon"}]}`:     `found "soon"`,
		`[`:                                  "unexpected",
		strings.Repeat(" ", 1<<20) + "{}":    "at most 1048576",
		`{"nodes":[{"id":"a","retries":3}]}`: `unknown field "retries"`,
	} {
		if _, err := ParseDefinition([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", text, err, want)
		}
	}
}

func TestStepLimit(t *testing.T) {
	tests := []struct{ own, byDefault, pipeline, want time.Duration }{
		{0, 0, 0, 0}, {0, 0, 60, 60}, {0, 10, 60, 10}, {0, 10, 5, 5}, {0, 10, 0, 10}, {30, 10, 60, 30}, {90, 10, 60, 90},
	}
	for _, test := range tests {
		v := vertex{timeout: test.own, runner: &fakeRunner{}}
		if test.byDefault != 0 {
			v.runner = limitedRunner{&fakeRunner{}, test.byDefault}
		}
		if got := v.limit(test.pipeline); got != test.want {
			t.Errorf("%+v: got %d", test, got)
		}
	}
}

type limitedRunner struct {
	*fakeRunner
	limit time.Duration
}

func (r limitedRunner) DefaultTimeout() time.Duration { return r.limit }

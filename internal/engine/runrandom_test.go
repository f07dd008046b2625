package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/relayops/relayops/internal/jsontime"
)

func durationOf(d time.Duration) jsontime.Duration { return jsontime.Duration(d) }

// drawPipeline draws a definition with joins, branches, error edges and nodes that continue, and what each node does
// when it runs: the branch it takes, or "fail" for a permanent failure.
func drawPipeline(t *rapid.T) (Definition, map[string]string) {
	def := Definition{Nodes: []Node{{ID: "start", Type: TypeStart}}}
	does := map[string]string{"start": BranchSuccess}
	branches := map[string][]string{"start": {BranchSuccess}}
	n := rapid.IntRange(1, 10).Draw(t, "nodes")
	for i := 1; i <= n; i++ {
		node := Node{ID: fmt.Sprint("n", i), Type: rapid.SampledFrom([]string{"pure", "stored", "external"}).Draw(t, "type")}
		branches[node.ID] = []string{BranchSuccess, BranchError}
		choices := []string{BranchSuccess, BranchSuccess, "fail"}
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			node.Config = json.RawMessage(`{"branches": ["a", "b"]}`)
			branches[node.ID] = []string{"a", "b", BranchError}
			choices = []string{"a", "b"}
		case 1:
			node.OnError = OnErrorContinue
			branches[node.ID] = []string{BranchSuccess}
		}
		does[node.ID] = rapid.SampledFrom(choices).Draw(t, "does")
		for _, from := range rapid.SliceOfNDistinct(rapid.IntRange(0, i-1), 1, min(i, 3), rapid.ID[int]).Draw(t, "from") {
			id := def.Nodes[from].ID
			def.Edges = append(def.Edges, Edge{From: id, To: node.ID, Branch: rapid.SampledFrom(branches[id]).Draw(t, "branch")})
		}
		def.Nodes = append(def.Nodes, node)
	}
	return def, does
}

// expectation says, by walking the definition once, how each step ends, and which nodes abort the pipeline.
func expectation(def Definition, does map[string]string) (want map[string]string, aborts bool) {
	want = map[string]string{}
	taken := map[string]bool{"start": true}
	for _, node := range def.Nodes {
		if !taken[node.ID] {
			want[node.ID] = "SKIPPED"
			continue
		}
		hasErrorEdge := slices.ContainsFunc(def.Edges, func(e Edge) bool { return e.From == node.ID && e.Branch == BranchError })
		branch, outcome := does[node.ID], "SUCCEEDED "+does[node.ID]
		if branch == "fail" {
			switch {
			case node.OnError == OnErrorContinue:
				branch, outcome = BranchSuccess, "CONTINUED success invalid_request"
			case hasErrorEdge:
				branch, outcome = BranchError, "FAILED error invalid_request"
			default:
				branch, outcome, aborts = "", "FAILED invalid_request", true
			}
		}
		want[node.ID] = outcome
		for _, edge := range def.Edges {
			if edge.From == node.ID && edge.Branch == branch {
				taken[edge.To] = true
			}
		}
	}
	return want, aborts
}

func scripted(does map[string]string) map[string]behaviour {
	all := map[string]behaviour{}
	for id, what := range does {
		all[id] = func(_ context.Context, call *Call) (Output, error) {
			time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
			if what == "fail" {
				return Output{}, Permanent(CodeInvalidRequest, nil)
			}
			return Output{Branch: what, Value: call.NodeID}, nil
		}
	}
	return all
}

func TestRunGivesTheSameInAnyOrderAndAfterAnyCrash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def, does := drawPipeline(t)
		want, aborts := expectation(def, does)
		types, world := fakes(scripted(does))
		g, err := Compile(def, types)
		if err != nil {
			t.Fatalf("compile: %v", err)
		}
		journal := &memoryJournal{}
		runtime := Runtime{Journal: journal, Parallelism: rapid.IntRange(1, 4).Draw(t, "parallelism")}
		result, err := g.Run(context.Background(), someExecution(), runtime)
		if err != nil {
			t.Fatal(err)
		}
		if aborts != (result.Outcome == Failed) {
			t.Fatalf("outcome %s, aborts %v", result.Outcome, aborts)
		}
		got := outcomes(append(journal.steps(), result.Pending...))
		checkRun(t, got, want, aborts)

		// A crash leaves what a prefix of the commits recorded. The next attempt ends the same, and runs none of it.
		recorded := slices.Concat(journal.commits[:rapid.IntRange(0, len(journal.commits)).Draw(t, "commits")]...)
		execution := someExecution()
		execution.Completed = recorded
		before := len(world.ran())
		again := &memoryJournal{}
		runtime.Journal = again
		result, err = g.Run(context.Background(), execution, runtime)
		if err != nil {
			t.Fatal(err)
		}
		resumed := outcomes(append(again.steps(), result.Pending...))
		for _, step := range recorded {
			if !settles(&step) {
				continue
			}
			if slices.Contains(world.ran()[before:], step.NodeID) {
				t.Fatalf("%s is recorded and ran again", step.NodeID)
			}
			maps.Copy(resumed, outcomes([]Step{step}))
		}
		if aborts != (result.Outcome == Failed) {
			t.Fatalf("resumed: outcome %s, aborts %v", result.Outcome, aborts)
		}
		checkRun(t, resumed, want, aborts)
	})
}

// checkRun compares steps with the expectation. A pipeline that aborts leaves nodes without a step, depending on what
// ran when; those that have one ended as they should.
func checkRun(t *rapid.T, got, want map[string]string, aborts bool) {
	for id, outcome := range want {
		if found, present := got[id]; found != outcome && (present || !aborts) {
			t.Fatalf("%s: %q, want %q\nall: %v", id, found, outcome, got)
		}
	}
}

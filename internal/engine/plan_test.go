package engine

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawGraph draws a graph in which every node is reached from node 0, with the branches a and b on its edges.
func drawGraph(t *rapid.T) *Graph {
	n := rapid.IntRange(1, 14).Draw(t, "nodes")
	g := &Graph{nodes: make([]vertex, n)}
	for to := 1; to < n; to++ {
		predecessors := rapid.SliceOfNDistinct(rapid.IntRange(0, to-1), 1, min(to, 4), rapid.ID[int]).Draw(t, "from")
		for _, from := range predecessors {
			for _, branch := range rapid.SampledFrom([][]string{{"a"}, {"b"}, {"a", "b"}}).Draw(t, "branches") {
				g.nodes[from].out = append(g.nodes[from].out, arc{to: to, branch: branch})
				g.nodes[to].in++
			}
		}
	}
	return g
}

// drawBranches draws which branch each node takes if it runs; none is possible too.
func drawBranches(t *rapid.T, g *Graph) []string {
	branch := rapid.SampledFrom([]string{"a", "b", noBranch})
	branches := make([]string, len(g.nodes))
	for i := range branches {
		branches[i] = branch.Draw(t, "branch")
	}
	return branches
}

// runs is the plan's meaning, said in another way: a node runs if it is the start, or an edge of the branch that a
// running node takes leads to it. Nodes are in topological order.
func runs(g *Graph, branches []string) []bool {
	result := make([]bool, len(g.nodes))
	result[0] = true
	for i, v := range g.nodes {
		for _, a := range v.out {
			if result[i] && a.branch == branches[i] {
				result[a.to] = true
			}
		}
	}
	return result
}

// execution runs a plan to its end, finishing nodes in the order that pick chooses, and checks on the way that edges
// are respected and that nothing is settled twice.
type execution struct {
	t        *rapid.T
	g        *Graph
	branches []string
	recorded map[int]string
	settled  map[int]string // node → "run" or "skip"
	order    []int          // nodes that ran, in the order they finished
}

func (x *execution) run(pick func(most int) int) {
	p, d := newPlan(x.g, x.recorded)
	var ready []int
	for {
		if !slices.IsSorted(d.run) || !slices.IsSorted(d.skip) {
			x.t.Fatalf("decision %v is not in the definition's order", d)
		}
		for _, node := range d.skip {
			x.settle(node, "skip")
		}
		for _, node := range d.run {
			if _, isRecorded := x.recorded[node]; isRecorded {
				x.t.Fatalf("node %d is recorded and runs again", node)
			}
			x.settle(node, "run")
		}
		ready = append(ready, d.run...)
		if len(ready) == 0 {
			break
		}
		i := pick(len(ready) - 1)
		node := ready[i]
		ready = slices.Delete(ready, i, i+1)
		x.order = append(x.order, node)
		d = p.settle(node, x.branches[node])
	}
	if p.left != 0 {
		x.t.Fatalf("deadlock: %d nodes are never settled", p.left)
	}
}

func (x *execution) settle(node int, how string) {
	if before, twice := x.settled[node]; twice {
		x.t.Fatalf("node %d is settled twice: %s, %s", node, before, how)
	}
	x.settled[node] = how
	for from, v := range x.g.nodes {
		for _, a := range v.out {
			_, isRecorded := x.recorded[from]
			finished := slices.Contains(x.order, from) || x.settled[from] == "skip" || isRecorded
			if a.to == node && !finished {
				x.t.Fatalf("node %d is settled before node %d, which leads to it", node, from)
			}
		}
	}
}

func drawExecution(t *rapid.T, g *Graph, branches []string, recorded map[int]string) *execution {
	x := &execution{t: t, g: g, branches: branches, recorded: recorded, settled: map[int]string{}}
	x.run(func(most int) int { return rapid.IntRange(0, most).Draw(t, "finishes next") })
	return x
}

func TestPlanRunsWhatItsEdgesSayInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		branches := drawBranches(t, g)
		x := drawExecution(t, g, branches, nil)
		for node, should := range runs(g, branches) {
			want := "skip"
			if should {
				want = "run"
			}
			if x.settled[node] != want {
				t.Fatalf("node %d: %s, want %s", node, x.settled[node], want)
			}
		}
	})
}

func TestPlanResumesAfterAnyPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		branches := drawBranches(t, g)
		whole := drawExecution(t, g, branches, nil)
		recorded := map[int]string{}
		for _, node := range whole.order[:rapid.IntRange(0, len(whole.order)).Draw(t, "recorded")] {
			recorded[node] = branches[node]
		}
		rest := drawExecution(t, g, branches, recorded)
		together := maps.Clone(rest.settled)
		for node := range recorded {
			together[node] = "run"
		}
		if !maps.Equal(together, whole.settled) {
			t.Fatalf("resumed after %v: %v\nin one go: %v", recorded, together, whole.settled)
		}
	})
}

// A record of a node whose ancestors are not recorded must not happen; if it does, the node is still never run again.
func TestPlanNeverRunsARecordedNode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		branches := drawBranches(t, g)
		recorded := map[int]string{}
		for node := range g.nodes {
			if rapid.Bool().Draw(t, fmt.Sprint("recorded ", node)) {
				recorded[node] = branches[node]
			}
		}
		drawExecution(t, g, branches, recorded)
	})
}

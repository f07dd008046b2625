package engine

import "slices"

// plan decides which nodes run, by dead-path elimination. It is pure: it knows neither time nor what a step does.
// Its state is one count and one mark per node, so that a decision costs no more than the edges it settles.
type plan struct {
	nodes []vertex
	// recorded is the branch of each node that an earlier attempt recorded; such a node never runs.
	recorded map[int]string
	// unsettled counts the edges into a node that are neither taken nor dead; taken marks nodes with a taken one.
	unsettled []int
	taken     []bool
	// left is how many nodes are not settled yet.
	left int
}

// decision is what follows from a node's end: nodes to run, and nodes that are skipped and settled with that. Both
// are in the definition's order.
type decision struct{ run, skip []int }

// newPlan begins a plan and gives its first decision.
func newPlan(g *Graph, recorded map[int]string) (*plan, decision) {
	p := &plan{
		nodes: g.nodes, recorded: recorded, left: len(g.nodes),
		unsettled: make([]int, len(g.nodes)), taken: make([]bool, len(g.nodes)),
	}
	for i := range g.nodes {
		p.unsettled[i] = g.nodes[i].in
	}
	var d decision
	p.ready(g.start, &d)
	return p, d.sorted()
}

// settle says that a node that was to run is over and took a branch; noBranch where it took none.
func (p *plan) settle(node int, branch string) decision {
	var d decision
	p.settleInto(node, branch, &d)
	return d.sorted()
}

// noBranch is taken by a node whose edges all die.
const noBranch = ""

func (p *plan) settleInto(node int, branch string, d *decision) {
	p.left--
	for _, a := range p.nodes[node].out {
		p.unsettled[a.to]--
		if branch != noBranch && a.branch == branch {
			p.taken[a.to] = true
		}
		if p.unsettled[a.to] > 0 {
			continue
		}
		if p.taken[a.to] {
			p.ready(a.to, d)
			continue
		}
		d.skip = append(d.skip, a.to)
		p.settleInto(a.to, noBranch, d)
	}
}

// ready runs a node, or settles it as it is recorded.
func (p *plan) ready(node int, d *decision) {
	if branch, isRecorded := p.recorded[node]; isRecorded {
		p.settleInto(node, branch, d)
		return
	}
	d.run = append(d.run, node)
}

func (d decision) sorted() decision {
	slices.Sort(d.run)
	slices.Sort(d.skip)
	return d
}

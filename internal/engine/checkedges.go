package engine

import (
	"fmt"
	"slices"
)

func (c *compilation) edges() {
	seen := make(map[Edge]int, len(c.def.Edges))
	for i, edge := range c.def.Edges {
		where := fmt.Sprintf("edges[%d]", i)
		from, knownFrom := c.endpoint(where+".from", edge.From)
		to, knownTo := c.endpoint(where+".to", edge.To)
		if !knownFrom || !knownTo {
			continue
		}
		if from == to {
			c.fault("", where, "an edge from "+quote(edge.From)+" to itself", "an edge to another node")
			continue
		}
		if c.graph.nodes[to].Type == TypeStart {
			c.fault("", where+".to", quote(edge.To)+", a start node", "a node other than start: a pipeline begins there")
			continue
		}
		branch := edge.Branch
		if branch == "" {
			branch = BranchSuccess
		}
		normal := Edge{From: edge.From, To: edge.To, Branch: branch}
		if first, double := seen[normal]; double {
			c.fault("", where, fmt.Sprintf("the same edge as edges[%d]", first), "each edge once")
			continue
		}
		seen[normal] = i
		c.checkBranch(&c.graph.nodes[from], edge, where)
		c.graph.nodes[from].out = append(c.graph.nodes[from].out, arc{to: to, branch: branch})
		c.graph.nodes[to].in++
	}
	for i := range c.graph.nodes {
		v := &c.graph.nodes[i]
		v.hasErrorEdge = slices.ContainsFunc(v.out, func(a arc) bool { return a.branch == BranchError })
		if v.hasErrorEdge && v.OnError == OnErrorContinue {
			c.fault(v.ID, fmt.Sprintf("nodes[%d].onError", i), `"continue" beside an edge with branch "error"`, "one of the two")
		}
	}
}

func (c *compilation) endpoint(field, id string) (int, bool) {
	i, known := c.graph.index[id]
	if !known {
		ids := make([]string, len(c.def.Nodes))
		for i, n := range c.def.Nodes {
			ids[i] = n.ID
		}
		c.fault("", field, quote(id)+", which is no node"+didYouMean(id, ids), "a node's id: "+list(ids))
	}
	return i, known
}

func (c *compilation) checkBranch(from *vertex, edge Edge, where string) {
	if from.runner == nil {
		return // Its config is refused: which branches it has is not known.
	}
	switch {
	case edge.Branch == "" && !slices.Contains(from.branches, BranchSuccess):
		c.fault("", where+".branch", "no branch on an edge from "+quote(edge.From)+" ("+from.Type+")", list(from.branches))
	case edge.Branch != "" && !slices.Contains(from.branches, edge.Branch):
		c.fault("", where+".branch", quote(edge.Branch)+didYouMean(edge.Branch, from.branches), list(from.branches))
	}
}

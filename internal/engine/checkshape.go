package engine

import (
	"fmt"
	"strings"
)

// shape checks the graph as a whole: one start, no cycle, everything reachable. It finds the ancestors too.
func (c *compilation) shape() {
	if n := len(c.starts); n != 1 {
		found := "no node of type start"
		if n > 1 {
			found = fmt.Sprintf("%d nodes of type start: %s", n, c.namesOf(c.starts))
		}
		c.fault("", "nodes", found, "exactly one")
	}
	c.cycles()
	if len(c.starts) > 0 {
		reached := c.reachable(c.starts)
		for i := range c.graph.nodes {
			if !reached[i] {
				c.fault(c.def.Nodes[i].ID, fmt.Sprintf("nodes[%d]", i), "a node that no path from the start leads to",
					"a node with an edge that leads to it")
			}
		}
	}
	for i := range c.graph.nodes {
		for to, reached := range c.reachable([]int{i}) {
			if reached && to != i {
				c.graph.nodes[to].ancestors = append(c.graph.nodes[to].ancestors, i)
			}
		}
	}
}

// reachable marks the nodes that paths from some nodes lead to, those included.
func (c *compilation) reachable(from []int) []bool {
	reached := make([]bool, len(c.graph.nodes))
	queue := append([]int(nil), from...)
	for _, i := range from {
		reached[i] = true
	}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, a := range c.graph.nodes[i].out {
			if !reached[a.to] {
				reached[a.to] = true
				queue = append(queue, a.to)
			}
		}
	}
	return reached
}

// cycles reports one cycle of each set of nodes that reach each other. A depth-first search meets a node that is
// still open exactly when an edge closes a cycle; nodes of a cycle that was reported are not reported again.
func (c *compilation) cycles() {
	const (
		unseen = iota
		open
		done
	)
	state := make([]int, len(c.graph.nodes))
	reported := make([]bool, len(c.graph.nodes))
	var path []int
	var visit func(i int)
	visit = func(i int) {
		state[i] = open
		path = append(path, i)
		for _, a := range c.graph.nodes[i].out {
			switch state[a.to] {
			case unseen:
				visit(a.to)
			case open:
				c.reportCycle(path, a.to, reported)
			}
		}
		path = path[:len(path)-1]
		state[i] = done
	}
	for i := range c.graph.nodes {
		if state[i] == unseen {
			visit(i)
		}
	}
}

func (c *compilation) reportCycle(path []int, closing int, reported []bool) {
	begin := len(path) - 1
	for path[begin] != closing {
		begin--
	}
	fresh := true
	names := make([]string, 0, len(path)-begin+1)
	for _, i := range path[begin:] {
		fresh = fresh && !reported[i]
		reported[i] = true
		names = append(names, c.def.Nodes[i].ID)
	}
	if fresh {
		names = append(names, c.def.Nodes[closing].ID)
		c.fault("", "edges", "a cycle: "+strings.Join(names, " → "), "a graph without cycles")
	}
}

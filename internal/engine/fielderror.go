package engine

import (
	"fmt"
	"strings"
)

// FieldError is one mistake in a pipeline: where, what was found, what is allowed.
type FieldError struct {
	// Node is the node's id; empty for a mistake of the whole graph or of an edge.
	Node string
	// Field is the path from the definition, such as nodes[2].config.url.
	Field string
	// Found and Allowed are phrases for a person.
	Found, Allowed string
}

func (f FieldError) Error() string {
	where := f.Field
	if f.Node != "" {
		where = fmt.Sprintf("%s (node %q)", where, f.Node)
	}
	return fmt.Sprintf("%s: found %s; allowed: %s", where, f.Found, f.Allowed)
}

// FieldErrors is every mistake at once.
type FieldErrors []FieldError

func (f FieldErrors) Error() string {
	lines := make([]string, len(f))
	for i, one := range f {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

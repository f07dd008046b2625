package engine

import (
	"fmt"
	"strconv"
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

// JoinField puts a path below another: config and url give config.url, config and [0] give config[0].
func JoinField(parent, child string) string {
	switch {
	case child == "":
		return parent
	case parent == "" || child[0] == '[':
		return parent + child
	default:
		return parent + "." + child
	}
}

// KeyField is the path of an object's field: config.url, headers["X Key"].
func KeyField(parent, key string) string {
	if plainName(key) {
		return JoinField(parent, key)
	}
	return parent + "[" + quote(key) + "]"
}

// IndexField is the path of a list's element: cases[0].
func IndexField(parent string, index int) string { return parent + "[" + strconv.Itoa(index) + "]" }

func plainName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '$' {
			return false
		}
	}
	return name != "" && len(name) <= maxQuoted
}

package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one mistake in a manifest: where, what was found, what is allowed.
type Problem struct {
	// File as it was reached from the path that was given.
	File string `json:"file,omitempty"`
	// Line within the file, from 1; 0 where it is not known.
	Line int `json:"line,omitempty"`
	// Object is kind, namespace and name, such as "Pipeline default/order-post"; or "document 2" for a document that
	// is no object. Empty for a file that is no YAML.
	Object string `json:"object,omitempty"`
	// Field is a path such as spec.nodes[2].config.url. Empty for a mistake of the whole object.
	Field string `json:"field,omitempty"`
	// Found and Allowed are phrases for a person.
	Found   string `json:"found"`
	Allowed string `json:"allowed"`
}

// String is one line: file:line: object: field: found …; allowed: ….
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": ")
	}
	for _, part := range []string{p.Object, p.Field} {
		if part != "" {
			b.WriteString(part + ": ")
		}
	}
	b.WriteString("found " + p.Found + "; allowed: " + p.Allowed)
	return b.String()
}

// Problems are all mistakes at once.
type Problems []Problem

// Error has one line for each.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// Err is nil where there is no problem, and the problems otherwise.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// Merge joins the problems of two checks of the same objects, by file and line. Where both speak of the same field,
// the first is kept. Where the first speaks of a list and the second of something in it, the second is kept: whoever
// checks elements says again, and more precisely, what a rule over the list says.
func (p Problems) Merge(more Problems) Problems {
	merged := make(Problems, 0, len(p)+len(more))
	for _, one := range p {
		if !slices.ContainsFunc(more, one.summarises) {
			merged = append(merged, one)
		}
	}
	for _, one := range more {
		if !slices.ContainsFunc(merged, one.sameField) {
			merged = append(merged, one)
		}
	}
	slices.SortStableFunc(merged, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Object, b.Object),
			strings.Compare(a.Field, b.Field))
	})
	return merged
}

func (p Problem) sameField(other Problem) bool {
	return p.File == other.File && p.Object == other.Object && p.Field == other.Field && p.Field != ""
}

// summarises reports whether p is about a list, and other about an element of it.
func (p Problem) summarises(other Problem) bool {
	return p.File == other.File && p.Object == other.Object && p.Field != "" &&
		strings.HasPrefix(other.Field, p.Field+"[")
}

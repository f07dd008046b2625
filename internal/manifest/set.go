package manifest

import (
	"fmt"
	"slices"

	"github.com/relayops/relayops/api/v1alpha1"
)

// Set is the custom resources of some files, with defaults filled in.
type Set struct {
	Relays    []Relay
	Pipelines []Pipeline
	// Notes say what was skipped, and why.
	Notes []Note
}

// Relay is an OutboxRelay and where it stands.
type Relay struct {
	Source
	Object *v1alpha1.OutboxRelay
}

// Pipeline is a Pipeline and where it stands.
type Pipeline struct {
	Source
	Object *v1alpha1.Pipeline
}

// Source is where an object stands. The zero value is that of an object that was read from no file.
type Source struct {
	File string
	// Document counts from 1 within the file.
	Document int
	// Faulty: a Problem of this object was reported. It is in the set so that its other mistakes can be found too.
	Faulty bool

	lines lineIndex
}

// Problem is a mistake in an object that stands at s.
func (s Source) Problem(object, field, found, allowed string) Problem {
	return Problem{
		File: s.File, Line: s.lines.find(field), Object: object, Field: field, Found: found, Allowed: allowed,
	}
}

// Note is something that was skipped.
type Note struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

func (n Note) String() string {
	if n.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", n.File, n.Line, n.Text)
	}
	return n.File + ": " + n.Text
}

// Name is how a problem names an object, such as "Pipeline default/order-post".
func Name(kind, namespace, name string) string { return fmt.Sprintf("%s %s/%s", kind, namespace, name) }

// With is the objects of both sets.
func (s Set) With(other Set) Set {
	return Set{
		Relays:    slices.Concat(s.Relays, other.Relays),
		Pipelines: slices.Concat(s.Pipelines, other.Pipelines),
		Notes:     slices.Concat(s.Notes, other.Notes),
	}
}

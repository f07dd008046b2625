// Package config reads the configurations of nodes: it parses their placeholders and expressions, gathers every fault
// and every step that they read.
package config

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/expression"
	"github.com/relayops/relayops/internal/placeholder"
)

// Reader reads the fields of one configuration. Its methods give nil for a field with a fault.
type Reader struct {
	faults     engine.FieldErrors
	references []engine.Reference
}

// Reads are the former steps that a runner reads; embedded, they are its method References.
type Reads []engine.Reference

// References implements a method of engine.Runner.
func (r Reads) References() []engine.Reference { return r }

// Decode reads raw into a struct. A field of another type than the schema's is left as it is: the schema reports it.
func (r *Reader) Decode(raw json.RawMessage, into any) {
	err := json.Unmarshal(raw, into)
	var mistyped *json.UnmarshalTypeError
	if err != nil && !errors.As(err, &mistyped) {
		r.Fault("", "text that is not JSON", "a JSON object")
	}
}

// Fault reports a fault of a field.
func (r *Reader) Fault(field, found, allowed string) {
	r.faults = append(r.faults, engine.FieldError{Field: field, Found: found, Allowed: allowed})
}

// Text parses a string with placeholders.
func (r *Reader) Text(field, source string) *placeholder.Text {
	text, err := placeholder.ParseText(source)
	if syntax, bad := errors.AsType[*placeholder.SyntaxError](err); bad {
		r.faults = append(r.faults, syntax.At(field))
		return nil
	}
	r.references = append(r.references, text.References(field)...)
	return text
}

// Texts parses the values of an object, in the order of its names.
func (r *Reader) Texts(field string, sources map[string]string) []NamedText {
	texts := make([]NamedText, 0, len(sources))
	for name, source := range sources {
		texts = append(texts, NamedText{Name: name, Text: r.Text(engine.KeyField(field, name), source)})
	}
	slices.SortFunc(texts, func(a, b NamedText) int { return strings.Compare(a.Name, b.Name) })
	return texts
}

// NamedText is one field of an object of strings with placeholders.
type NamedText struct {
	Name string
	Text *placeholder.Text
}

// Template parses a JSON document with placeholders.
func (r *Reader) Template(field string, raw json.RawMessage) *placeholder.Template {
	document, err := engine.DecodeJSON(raw)
	if err != nil {
		r.Fault(field, "text that is not JSON", "a JSON value")
		return nil
	}
	template, faults := placeholder.Parse(document, field)
	if len(faults) > 0 {
		r.faults = append(r.faults, faults...)
		return nil
	}
	r.references = append(r.references, template.References()...)
	return template
}

// Expression compiles a CEL expression.
func (r *Reader) Expression(field, source string, want expression.Kind) *expression.Program {
	program, err := expression.Compile(source, field, want)
	var syntax *expression.SyntaxError
	switch {
	case errors.As(err, &syntax):
		r.faults = append(r.faults, syntax.At(field))
		return nil
	case err != nil:
		r.Fault(field, "an expression that cannot be compiled here", err.Error())
		return nil
	}
	r.references = append(r.references, program.References()...)
	return program
}

// Reads are the steps that all fields read.
func (r *Reader) Reads() Reads { return r.references }

// Err is every fault, ordered by field, or nil.
func (r *Reader) Err() error {
	if len(r.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(r.faults, func(a, b engine.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return r.faults
}

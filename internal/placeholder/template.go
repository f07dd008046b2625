package placeholder

import (
	"maps"
	"slices"
	"strings"

	"github.com/relayops/relayops/internal/engine"
)

// Template is a JSON document with placeholders in its strings, parsed. It is read only.
type Template struct {
	root       element
	references []engine.Reference
}

// element is a part of a document: a *Text, a list, an object, or a value without placeholders.
type element any

type (
	list   []element
	object []field
	field  struct {
		key   string
		value element
	}
	fixed struct{ value any }
)

// Parse reads a document as engine.DecodeJSON gives it. The document stands at a field, which the references and the
// faults name. Placeholders in the names of an object's fields are refused.
func Parse(document any, at string) (*Template, engine.FieldErrors) {
	p := parser{}
	root := p.parse(document, at)
	if len(p.faults) > 0 {
		return nil, p.faults
	}
	return &Template{root: root, references: p.references}, nil
}

type parser struct {
	references []engine.Reference
	faults     engine.FieldErrors
}

func (p *parser) parse(document any, at string) element {
	switch v := document.(type) {
	case string:
		return p.text(v, at)
	case []any:
		elements := make(list, len(v))
		for i, e := range v {
			elements[i] = p.parse(e, engine.IndexField(at, i))
		}
		if isFixed(elements...) {
			return fixed{v}
		}
		return elements
	case map[string]any:
		fields := make(object, 0, len(v))
		values := make([]element, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			below := engine.KeyField(at, key)
			if strings.Contains(key, opening) {
				p.faults = append(p.faults, engine.FieldError{
					Field: below, Found: "{{ in a field's name", Allowed: "placeholders in values",
				})
			}
			value := p.parse(v[key], below)
			fields = append(fields, field{key, value})
			values = append(values, value)
		}
		if isFixed(values...) {
			return fixed{v}
		}
		return fields
	default:
		return fixed{v}
	}
}

func (p *parser) text(source, at string) element {
	text, fault := parseText(source)
	if fault != nil {
		p.faults = append(p.faults, fault.At(at))
		return fixed{source}
	}
	if text.IsLiteral() {
		literal, _ := text.Fill(nil, len(source))
		return fixed{literal}
	}
	p.references = append(p.references, text.References(at)...)
	return text
}

// isFixed reports whether all elements are values without placeholders, in which also no escape was undone.
func isFixed(elements ...element) bool {
	for _, e := range elements {
		f, ok := e.(fixed)
		if !ok {
			return false
		}
		if text, isText := f.value.(string); isText && strings.Contains(text, opening) {
			return false
		}
	}
	return true
}

// References are the steps that the document reads.
func (t *Template) References() []engine.Reference { return t.references }

// Render fills the document in. Its result shares parts with the template and the data: it is read only. All texts
// with placeholders together have at most maxBytes bytes.
func (t *Template) Render(data map[string]any, maxBytes int) (any, error) {
	r := renderer{data: data, left: maxBytes}
	return r.render(t.root)
}

type renderer struct {
	data map[string]any
	left int
}

func (r *renderer) render(e element) (any, error) {
	switch v := e.(type) {
	case *Text:
		if v.Lone() {
			return v.parts[0].value(r.data)
		}
		text, err := v.Fill(r.data, r.left)
		r.left -= len(text)
		return text, err
	case list:
		values := make([]any, len(v))
		for i, below := range v {
			value, err := r.render(below)
			if err != nil {
				return nil, err
			}
			values[i] = value
		}
		return values, nil
	case object:
		values := make(map[string]any, len(v))
		for _, f := range v {
			value, err := r.render(f.value)
			if err != nil {
				return nil, err
			}
			values[f.key] = value
		}
		return values, nil
	default:
		return v.(fixed).value, nil
	}
}

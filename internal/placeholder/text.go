package placeholder

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/relayops/relayops/internal/engine"
)

const (
	opening = "{{"
	// escapedOpening stands for a literal opening.
	escapedOpening = "{{{{"
)

// Text is one string with placeholders, parsed. It is read only.
type Text struct {
	parts []Part
}

// Part is a literal, or a placeholder.
type Part struct {
	Literal string
	path    *path
}

// IsPlaceholder reports whether the part is a placeholder.
func (p Part) IsPlaceholder() bool { return p.path != nil }

// ParseText reads a string. Its error is a [*SyntaxError].
func ParseText(text string) (*Text, error) {
	t, fault := parseText(text)
	if fault != nil {
		return nil, fault
	}
	return t, nil
}

func parseText(text string) (*Text, *SyntaxError) {
	t := &Text{}
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			t.parts = append(t.parts, Part{Literal: literal.String()})
			literal.Reset()
		}
	}
	for {
		before, rest, found := strings.Cut(text, opening)
		literal.WriteString(before)
		if !found {
			flush()
			return t, nil
		}
		if strings.HasPrefix(rest, opening) {
			literal.WriteString(opening)
			text = rest[len(opening):]
			continue
		}
		p, size, err := scanPath(rest)
		if err != nil {
			return nil, err
		}
		flush()
		t.parts = append(t.parts, Part{path: p})
		text = rest[size:]
	}
}

// Escape writes a text so that [ParseText] reads it as that literal.
func Escape(text string) string { return strings.ReplaceAll(text, opening, escapedOpening) }

// Parts are the literals and placeholders in their order. Two literals are never neighbours.
func (t *Text) Parts() []Part { return t.parts }

// IsLiteral reports whether the text has no placeholder.
func (t *Text) IsLiteral() bool {
	return len(t.parts) == 0 || len(t.parts) == 1 && t.parts[0].path == nil
}

// Lone reports whether the text is one placeholder and nothing else.
func (t *Text) Lone() bool { return len(t.parts) == 1 && t.parts[0].path != nil }

// Value is the text filled in; a lone placeholder keeps its type. A text of more than maxBytes bytes is the failure
// output_too_large; a lone value is not measured.
func (t *Text) Value(data map[string]any, maxBytes int) (any, error) {
	if t.Lone() {
		return t.parts[0].value(data)
	}
	return t.Fill(data, maxBytes)
}

// Fill is the text filled in, formatted, at most maxBytes bytes.
func (t *Text) Fill(data map[string]any, maxBytes int) (string, error) {
	return t.FillEach(data, maxBytes, func(_ int, value string) (string, error) { return value, nil })
}

// FillEach is [Text.Fill] with a function over what each placeholder brings in: part is its number in [Text.Parts].
func (t *Text) FillEach(
	data map[string]any, maxBytes int, f func(part int, value string) (string, error),
) (string, error) {
	var b strings.Builder
	for i, part := range t.parts {
		text := part.Literal
		if part.path != nil {
			value, err := part.format(data, maxBytes-b.Len())
			if err != nil {
				return "", err
			}
			if text, err = f(i, value); err != nil {
				return "", err
			}
		}
		if b.Len()+len(text) > maxBytes {
			return "", tooLarge(maxBytes)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func tooLarge(maxBytes int) error {
	return engine.Permanent(engine.CodeOutputTooLarge, fmt.Errorf("a text of more than %d bytes", maxBytes))
}

func (p Part) value(data map[string]any) (any, error) {
	value, ok := p.path.lookup(data)
	if !ok && !p.path.optional {
		return nil, engine.Permanent(engine.CodePlaceholderUnset, fmt.Errorf("{{%s}} has no value", p.path.source))
	}
	return value, nil
}

func (p Part) format(data map[string]any, maxBytes int) (string, error) {
	value, err := p.value(data)
	if err != nil {
		return "", err
	}
	switch v := value.(type) {
	case nil:
		if p.path.optional {
			return "", nil
		}
		return "null", nil
	case string:
		return v, nil
	case json.Number:
		return string(v), nil
	}
	text, err := engine.MarshalJSON(value, maxBytes)
	if errors.Is(err, engine.ErrTooLarge) {
		return "", tooLarge(maxBytes)
	}
	return string(text), err
}

// References are the steps that the text, which stands at a field, reads.
func (t *Text) References(field string) []engine.Reference {
	var all []engine.Reference
	for _, part := range t.parts {
		if part.path == nil {
			continue
		}
		if step, ok := part.path.step(); ok {
			all = append(all, engine.Reference{Step: step, Field: field})
		}
	}
	return all
}

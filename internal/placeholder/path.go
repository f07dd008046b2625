package placeholder

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/relayops/relayops/internal/engine"
)

// Limits of one path: bytes between the braces, and segments.
const (
	maxPathBytes = 512
	maxSegments  = 32
)

// SyntaxError says what is wrong with a placeholder.
type SyntaxError struct{ Found, Allowed string }

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("bad placeholder: found %s; allowed %s", e.Found, e.Allowed)
}

// At is the error as the fault of a field.
func (e *SyntaxError) At(field string) engine.FieldError {
	return engine.FieldError{Field: field, Found: "the placeholder " + e.Found, Allowed: e.Allowed}
}

// The roots that are not fields of the payload.
const (
	rootEvent   = "event"
	rootPayload = "payload"
	rootSteps   = "steps"
	rootContext = "context"
)

// path is what stands between the braces.
type path struct {
	// root is a key of the data; segments lead on from there.
	root     string
	segments []segment
	optional bool
	source   string
}

// segment is one step of a path. A name that is a decimal number is an element of a list too: index is then 0 or
// more. In brackets it is one of the two alone: name is then empty for an element, and index negative for a field.
type segment struct {
	name  string
	index int
}

const noIndex = -1

// lookup follows the path; ok is false where it leads nowhere.
func (p *path) lookup(data map[string]any) (value any, ok bool) {
	value, ok = data[p.root]
	for _, s := range p.segments {
		if !ok {
			return nil, false
		}
		switch container := value.(type) {
		case map[string]any:
			value, ok = container[s.name]
			ok = ok && s.name != ""
		case []any:
			ok = s.index >= 0 && s.index < len(container)
			if ok {
				value = container[s.index]
			}
		default:
			ok = false
		}
	}
	return value, ok
}

// scanPath reads a path at the beginning of text, which ends with the braces, and gives the number of bytes read,
// braces included.
func scanPath(text string) (*path, int, *SyntaxError) {
	s := scanner{text: text}
	s.spaces()
	var names []segment
	name, err := s.name(true)
	if err != nil {
		return nil, 0, err
	}
	names = append(names, segment{name: name, index: noIndex})
	for {
		if len(names) > maxSegments || s.at > maxPathBytes {
			return nil, 0, &SyntaxError{
				Found: "{{" + clip(text), Allowed: fmt.Sprintf("at most %d segments and %d bytes", maxSegments, maxPathBytes),
			}
		}
		switch {
		case s.take("."):
			name, err := s.name(false)
			if err != nil {
				return nil, 0, err
			}
			names = append(names, segment{name: name, index: indexOf(name)})
		case s.take("["):
			bracketed, err := s.bracket()
			if err != nil {
				return nil, 0, err
			}
			names = append(names, bracketed)
		default:
			optional := s.take("?")
			source := strings.TrimSpace(text[:s.at])
			s.spaces()
			if !s.take("}}") {
				return nil, 0, s.fail("'.', '[', '?' or '}}'")
			}
			p, err := newPath(names, optional, source)
			return p, s.at, err
		}
	}
}

// newPath decides what the first name means, and checks what is known before anything runs.
func newPath(names []segment, optional bool, source string) (*path, *SyntaxError) {
	p := &path{root: names[0].name, segments: names[1:], optional: optional, source: source}
	var fault *SyntaxError
	switch p.root {
	case rootPayload:
	case rootEvent:
		fault = p.checkField(p.segments, engine.EventFields, "headers", "payload")
	case rootContext:
		fault = p.checkField(p.segments, engine.ContextFields)
	case rootSteps:
		if len(p.segments) > 0 {
			fault = p.checkField(p.segments[1:], engine.StepFields, "output")
		}
	default:
		p.root, p.segments = rootPayload, names
	}
	return p, fault
}

// checkField checks the first of some segments against the fields that exist; only those in deep have fields of
// their own.
func (p *path) checkField(segments []segment, fields []string, deep ...string) *SyntaxError {
	if len(segments) == 0 {
		return nil
	}
	if !slices.Contains(fields, segments[0].name) {
		allowed := "below " + p.root + ", one of " + strings.Join(fields, ", ")
		return &SyntaxError{Found: "{{" + clip(p.source) + "}}", Allowed: allowed}
	}
	if len(segments) > 1 && !slices.Contains(deep, segments[0].name) {
		allowed := "nothing below " + segments[0].name + ", which is a plain value"
		return &SyntaxError{Found: "{{" + clip(p.source) + "}}", Allowed: allowed}
	}
	return nil
}

// step is the id of the step that the path reads: "" for all of them; ok is false where it reads none.
func (p *path) step() (id string, ok bool) {
	if p.root != rootSteps {
		return "", false
	}
	if len(p.segments) == 0 {
		return "", true
	}
	return p.segments[0].name, true
}

func indexOf(name string) int {
	index, err := strconv.Atoi(name)
	if err != nil || index < 0 || strconv.Itoa(index) != name {
		return noIndex
	}
	return index
}

type scanner struct {
	text string
	at   int
}

func (s *scanner) spaces() {
	for s.at < len(s.text) && s.text[s.at] == ' ' {
		s.at++
	}
}

func (s *scanner) take(token string) bool {
	if !strings.HasPrefix(s.text[s.at:], token) {
		return false
	}
	s.at += len(token)
	return true
}

// name reads letters, digits, '_', '-', '$' and '@'; the first of a path is no digit and no '-'.
func (s *scanner) name(first bool) (string, *SyntaxError) {
	begin := s.at
	for s.at < len(s.text) {
		r, size := utf8.DecodeRuneInString(s.text[s.at:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		letter := unicode.IsLetter(r) || r == '_' || r == '$'
		if !letter && (first && s.at == begin || !unicode.IsDigit(r) && r != '-' && r != '@') {
			break
		}
		s.at += size
	}
	if s.at == begin {
		return "", s.fail("a name; {{{{ stands for a literal {{")
	}
	return s.text[begin:s.at], nil
}

// bracket reads 0] or "name"].
func (s *scanner) bracket() (segment, *SyntaxError) {
	begin := s.at
	if s.take(`"`) {
		for s.at < len(s.text) && s.text[s.at] != '"' {
			if s.text[s.at] == '\\' {
				s.at++
			}
			s.at++
		}
		s.at = min(s.at+1, len(s.text))
		var name string
		if json.Unmarshal([]byte(s.text[begin:s.at]), &name) != nil || name == "" || !s.take("]") {
			return segment{}, s.fail(`["name"], with the name as a JSON string`)
		}
		return segment{name: name, index: noIndex}, nil
	}
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	index := indexOf(s.text[begin:s.at])
	if index == noIndex || !s.take("]") {
		return segment{}, s.fail(`[0] or ["name"]`)
	}
	return segment{index: index}, nil
}

func (s *scanner) fail(allowed string) *SyntaxError {
	return &SyntaxError{
		Found: "{{" + clip(s.text), Allowed: fmt.Sprintf("after {{%s: %s", clip(s.text[:s.at]), allowed),
	}
}

// clip bounds a text for a message, and quotes what is not printable.
func clip(text string) string {
	const most = 40
	runes := []rune(strings.ToValidUTF8(text, "\uFFFD"))
	if len(runes) > most {
		runes = append(runes[:most], '…')
	}
	quoted := strconv.Quote(string(runes))
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

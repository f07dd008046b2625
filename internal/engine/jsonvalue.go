package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ErrTooLarge is wrapped by the errors of [MarshalJSON] for values that are too large or too deep, or have a number
// that is too long, to be stored.
var ErrTooLarge = errors.New("value too large")

// MarshalJSON gives a value's JSON text in at most maxBytes bytes. The text is one that PostgreSQL's jsonb can hold:
// NUL characters become U+FFFD, and depth and length of numbers are bounded. Unlike json.Marshal it stops before it
// builds what is too large, however often the value refers to the same part.
func MarshalJSON(value any, maxBytes int) (json.RawMessage, error) {
	if err := measure(value, maxBytes, maxOutputDepth); err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("marshal %T: %w", value, err)
	}
	text := bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
	if len(text) > maxBytes {
		return nil, fmt.Errorf("%w: %d bytes, allowed: at most %d", ErrTooLarge, len(text), maxBytes)
	}
	replaceNUL(text)
	return text, nil
}

// DecodeJSON reads one JSON document; its numbers are json.Number, which keeps their digits.
func DecodeJSON(text []byte) (any, error) { return decodeJSON(text) }

func decodeJSON(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read JSON: more text after the document")
	}
	return value, nil
}

// replaceNUL writes \ufffd over each escape \u0000. An escaped backslash before u0000 is plain text, so escapes are
// stepped over as pairs.
func replaceNUL(text []byte) {
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(text[i+1:], []byte("u0000")) {
			copy(text[i:], `\ufffd`)
		}
		i++
	}
}

// measure walks a value and fails as soon as its JSON text is sure to be longer than maxBytes, or it nests deeper
// than maxDepth, or a number in it is too long.
func measure(value any, maxBytes, maxDepth int) error {
	m := measuring{left: maxBytes}
	if err := m.walk(value, maxDepth); err != nil {
		return err
	}
	return nil
}

type measuring struct{ left int }

func (m *measuring) spend(n int) error {
	if m.left -= n; m.left < 0 {
		return fmt.Errorf("%w: more bytes than allowed", ErrTooLarge)
	}
	return nil
}

func (m *measuring) walk(value any, depth int) error {
	if depth < 0 {
		return fmt.Errorf("%w: nested too deep", ErrTooLarge)
	}
	switch v := value.(type) {
	case nil, bool, int, int32, int64, uint64, float64:
		return m.spend(1)
	case string:
		return m.spend(len(v) + 2)
	case json.Number:
		if !numberFits(string(v)) {
			return fmt.Errorf("%w: a number of more than %d digits", ErrTooLarge, maxNumberDigits)
		}
		return m.spend(len(v))
	case []any:
		for _, element := range v {
			if err := m.spend(1); err != nil {
				return err
			}
			if err := m.walk(element, depth-1); err != nil {
				return err
			}
		}
		return m.spend(1)
	case map[string]any:
		for key, element := range v {
			if err := m.spend(len(key) + 4); err != nil {
				return err
			}
			if err := m.walk(element, depth-1); err != nil {
				return err
			}
		}
		return m.spend(1)
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("marshal %T: %w", v, err)
		}
		plain, err := decodeJSON(text)
		if err != nil {
			return err
		}
		return m.walk(plain, depth)
	}
}

// numberFits reports whether a JSON number, written out without its exponent, has at most maxNumberDigits digits.
func numberFits(number string) bool {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	if len(mantissa) > maxNumberDigits {
		return false
	}
	if exponent == "" {
		return true
	}
	e, err := strconv.Atoi(exponent)
	return err == nil && max(e, -e)+len(mantissa) <= maxNumberDigits
}

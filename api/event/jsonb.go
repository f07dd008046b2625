package event

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf16"
)

// Limits of PostgreSQL's numeric, which holds the numbers of a jsonb.
const (
	maxIntegerDigits  = 131072
	maxFractionDigits = 16383
)

// jsonbText gives the size, in bytes, that a valid JSON document has as the text of a jsonb: without the white space
// that it came with, one space after ',' and ':', escapes only where they are needed, numbers without exponent. Members
// of one name count each, although a jsonb keeps the last. Where jsonb cannot hold the document, problem says why.
//
// The producer asks before the database does: a refused INSERT would have failed the caller's whole transaction.
func jsonbText(document []byte) (size int, problem string) {
	depth := 0
	for i := 0; i < len(document); {
		switch c := document[i]; c {
		case '"':
			end, text, problem := jsonbString(document[i:])
			if problem != "" {
				return 0, problem
			}
			i += end
			size += text
			continue
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			end, text, problem := jsonbNumber(document[i:])
			if problem != "" {
				return 0, problem
			}
			i += end
			size += text
			continue
		case '[', '{':
			if depth++; depth > MaxPayloadDepth {
				return 0, "arrays and objects nested deeper than " + strconv.Itoa(MaxPayloadDepth)
			}
			size++
		case ']', '}':
			depth--
			size++
		case ',', ':':
			size += 2
		case ' ', '\t', '\r', '\n':
		default: // A letter of true, false or null.
			size++
		}
		i++
	}
	return size, ""
}

// jsonbString reads the string that document begins with: where it ends, and how long jsonb prints it.
func jsonbString(document []byte) (end, size int, problem string) {
	const loneSurrogate = `one half of a surrogate pair (\ud800 to \udfff)`
	size = 2
	for i := 1; i < len(document); {
		switch c := document[i]; {
		case c == '"':
			return i + 1, size, ""
		case c != '\\':
			size++
			i++
		case document[i+1] != 'u':
			if document[i+1] == '/' {
				size--
			}
			size += 2
			i += 2
		default:
			r := escapedRune(document[i:])
			i += 6
			switch {
			case r == 0:
				return 0, 0, `a NUL character (\u0000)`
			case utf16.IsSurrogate(r):
				if utf16.DecodeRune(r, escapedRune(document[i:])) == unicode.ReplacementChar {
					return 0, 0, loneSurrogate
				}
				i += 6
				size += 4
			default:
				size += printedSize(r)
			}
		}
	}
	return len(document), size, ""
}

// escapedRune reads \uXXXX; 0 where text does not begin with one.
func escapedRune(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	r, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(r)
}

// printedSize is the size of a character of the basic plane in the text of a jsonb.
func printedSize(r rune) int {
	switch {
	case r == '"', r == '\\', r == '\b', r == '\f', r == '\n', r == '\r', r == '\t':
		return 2
	case r < 0x20:
		return 6
	case r < 0x80:
		return 1
	case r < 0x800:
		return 2
	default:
		return 3
	}
}

// jsonbNumber reads the number that document begins with: where it ends, and how long jsonb prints it.
func jsonbNumber(document []byte) (end, size int, problem string) {
	const tooLarge = "a number of more than 131072 digits before the point or 16383 after it"
	for end < len(document) && bytes.IndexByte([]byte("+-.0123456789eE"), document[end]) >= 0 {
		end++
	}
	mantissa, exponentText, _ := bytes.Cut(bytes.ToLower(document[:end]), []byte("e"))
	exponent := 0
	if len(exponentText) > 0 {
		var err error
		if exponent, err = strconv.Atoi(string(exponentText)); err != nil || exponent > 1e9 || exponent < -1e9 {
			return 0, 0, tooLarge
		}
	}
	mantissa, isNegative := bytes.CutPrefix(mantissa, []byte("-"))
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	digits := append(append(make([]byte, 0, len(mantissa)), whole...), fraction...)
	significant := bytes.TrimLeft(digits, "0")
	wholeDigits := 1
	if len(significant) > 0 {
		wholeDigits = max(1, len(whole)+exponent-(len(digits)-len(significant)))
	}
	fractionDigits := max(0, len(fraction)-exponent)
	if wholeDigits > maxIntegerDigits || fractionDigits > maxFractionDigits {
		return 0, 0, tooLarge
	}
	size = wholeDigits
	if fractionDigits > 0 {
		size += 1 + fractionDigits
	}
	if isNegative && len(significant) > 0 {
		size++
	}
	return end, size, ""
}

package event

import (
	"fmt"
	"strings"
)

// Subject is the NATS subject of an event: <prefix>.<org>.<EventType>, each of the two tokens escaped with
// [EscapeToken].
func Subject(prefix, org, eventType string) string {
	return prefix + "." + EscapeToken(org) + "." + EscapeToken(eventType)
}

// FilterSubject matches the events of one type: of one organisation, or of all where org is empty.
func FilterSubject(prefix, org, eventType string) string {
	if org == "" {
		return prefix + ".*." + EscapeToken(eventType)
	}
	return Subject(prefix, org, eventType)
}

const upperHex = "0123456789ABCDEF"

// EscapeToken turns any non-empty text into one token of a NATS subject, reversibly and injectively: letters, digits,
// '-' and '_' stand for themselves, every other byte is '%' and two hexadecimal digits. No input yields a '.', '*',
// '>' or white space, so no tenant and no type can widen a subject.
func EscapeToken(text string) string {
	escaped := 0
	for i := range len(text) {
		if !tokenByte(text[i]) {
			escaped++
		}
	}
	if escaped == 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + 2*escaped)
	for i := range len(text) {
		if c := text[i]; tokenByte(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		}
	}
	return b.String()
}

// UnescapeToken reverses [EscapeToken]. It refuses every token that EscapeToken does not produce, so that each name
// has exactly one subject.
func UnescapeToken(token string) (string, error) {
	if token == "" {
		return "", fmt.Errorf("subject token: found nothing, allowed: at least one character")
	}
	var b strings.Builder
	b.Grow(len(token))
	for i := 0; i < len(token); i++ {
		c := token[i]
		switch {
		case tokenByte(c):
			b.WriteByte(c)
		case c == '%' && i+2 < len(token):
			high, low := strings.IndexByte(upperHex, token[i+1]), strings.IndexByte(upperHex, token[i+2])
			if high < 0 || low < 0 {
				return "", fmt.Errorf("subject token %q: found %q, allowed: %% and two of 0-9, A-F", token, token[i:i+3])
			}
			decoded := byte(high<<4 | low)
			if tokenByte(decoded) {
				return "", fmt.Errorf("subject token %q: found %q, allowed: %q unescaped", token, token[i:i+3], decoded)
			}
			b.WriteByte(decoded)
			i += 2
		default:
			return "", fmt.Errorf("subject token %q: found %q, allowed: letters, digits, '-', '_' and %% escapes", token, c)
		}
	}
	return b.String(), nil
}

func tokenByte(c byte) bool {
	return asciiLetter(c) || '0' <= c && c <= '9' || c == '-' || c == '_'
}

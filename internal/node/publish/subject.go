package publish

import (
	"fmt"
	"strings"

	"github.com/relayops/relayops/internal/placeholder"
)

// shapeOf is the subject with x for each placeholder: what one brings in is escaped to a part of one token, so that
// the literals alone decide how many tokens there are.
func shapeOf(subject *placeholder.Text) string {
	var b strings.Builder
	for _, part := range subject.Parts() {
		if part.IsPlaceholder() {
			b.WriteByte('x')
		} else {
			b.WriteString(part.Literal)
		}
	}
	return b.String()
}

// checkSubject refuses what is no subject of one message, what belongs to the broker, and what lies below the prefix
// of the relay's events: a message there would be taken for an event, of any organisation.
func checkSubject(subject, eventPrefix string) error {
	if len(subject) > MaxSubjectBytes {
		return fmt.Errorf("a subject of %d bytes, more than %d", len(subject), MaxSubjectBytes)
	}
	tokens := strings.Split(subject, ".")
	for _, token := range tokens {
		switch {
		case token == "":
			return fmt.Errorf("a subject with an empty token")
		case strings.ContainsAny(token, "*>"):
			return fmt.Errorf("a subject with a wildcard")
		}
		for i := range len(token) {
			if token[i] <= 0x20 || token[i] >= 0x7f {
				return fmt.Errorf("a subject with white space, or a character beyond ASCII")
			}
		}
	}
	if strings.HasPrefix(subject, "$") || tokens[0] == "_INBOX" {
		return fmt.Errorf("a subject of the broker's own, below %s", tokens[0])
	}
	if eventPrefix != "" && (subject == eventPrefix || strings.HasPrefix(subject, eventPrefix+".")) {
		return fmt.Errorf("a subject below %s, where the relay's events are", eventPrefix)
	}
	return nil
}

// reservedHeader reports whether a header belongs to the broker or to RelayOps.
func reservedHeader(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasPrefix(lower, "nats-") || strings.HasPrefix(lower, "relayops-") ||
		lower == "traceparent" || lower == "tracestate"
}

package worker

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/execution"
)

// inbound is a message as the stream has it, perhaps without its body.
type inbound struct {
	stream   string
	seq      uint64
	storedAt time.Time
	subject  string
	header   nats.Header
}

// message is what a dead letter of the message tells of it: the organisation is the subject's, whatever headers claim.
func (m *inbound) message(prefix string) execution.Message {
	return execution.Message{Stream: m.stream, Seq: m.seq, StoredAt: m.storedAt, OrgID: orgOfSubject(prefix, m.subject)}
}

// orgOfSubject is the organisation that a subject names; empty when it names none.
func orgOfSubject(prefix, subject string) string {
	tokens, found := strings.CutPrefix(subject, prefix+".")
	if !found {
		return ""
	}
	token, _, _ := strings.Cut(tokens, ".")
	org, err := event.UnescapeToken(token)
	if err != nil {
		return ""
	}
	return org
}

// decode reads a message. What its headers claim counts only under the subject that belongs to it: the broker's
// permissions are given by subject, so a publisher of one organisation cannot speak for another one.
func decode(prefix, subject string, header nats.Header, body []byte) (*event.Delivery, error) {
	d, err := event.Decode(header, body)
	if err != nil {
		return nil, err
	}
	if belongs := event.Subject(prefix, d.OrgID, d.EventType); subject != belongs {
		return nil, fmt.Errorf("%w: subject: found %q, allowed for these headers: %q", event.ErrInvalid, subject, belongs)
	}
	return d, nil
}

// decodeHeaders reads a message without its payload: as one whose payload is elsewhere.
func decodeHeaders(prefix, subject string, header nats.Header) (*event.Delivery, error) {
	header = maps.Clone(header)
	if header.Get(event.HeaderPayloadRef) == "" {
		header[event.HeaderPayloadRef] = []string{event.PayloadRefOutbox}
	}
	return decode(prefix, subject, header, nil)
}

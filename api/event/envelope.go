package event

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Limits of an envelope. The same numbers stand as CHECK constraints in the outbox table, so that a plain INSERT
// meets them too.
const (
	// MaxTokenBytes bounds OrgID and EventType, in bytes: both become one token of a NATS subject.
	MaxTokenBytes = 128
	// MaxTextBytes bounds AggregateType, AggregateID, CorrelationID and CausationID, in bytes.
	MaxTextBytes = 256
	// MaxPayloadBytes bounds the payload's JSON text, in bytes (8 MiB), as it was given and as PostgreSQL prints its
	// jsonb: with a space after ',' and ':', and numbers without exponent. What is larger belongs in an object store,
	// with its address in the event.
	MaxPayloadBytes = 8 << 20
	// MaxPayloadDepth bounds how deep the payload's arrays and objects are nested.
	MaxPayloadDepth = 1000
	// MaxHeaders and MaxHeadersBytes bound Headers: entries, and bytes of all keys and values together.
	MaxHeaders      = 64
	MaxHeadersBytes = 16 << 10
)

// Envelope is one event as the application committed it.
type Envelope struct {
	// ID identifies the event within its organisation. [New] makes a UUIDv7; any UUID but the nil one is allowed.
	ID uuid.UUID `json:"id"`
	// OrgID is the tenant. Required, at most [MaxTokenBytes]; any valid UTF-8 without control characters.
	OrgID string `json:"orgId"`
	// EventType is what happened, such as OrderConfirmed or invoice.paid. Required: a letter, then letters, digits,
	// '.', '_' or '-', at most [MaxTokenBytes].
	EventType string `json:"eventType"`
	// EventVersion is the version of the payload's schema, 1 or more.
	EventVersion int32 `json:"eventVersion"`
	// AggregateType and AggregateID name the business object, such as Order and its number. Both may be empty;
	// together with OrgID they are the key of ordered delivery.
	AggregateType string `json:"aggregateType,omitempty"`
	AggregateID   string `json:"aggregateId,omitempty"`
	// CorrelationID joins the events of one business transaction, CausationID names the event that caused this one.
	CorrelationID string `json:"correlationId,omitempty"`
	CausationID   string `json:"causationId,omitempty"`
	// Payload is the event's JSON document, at most [MaxPayloadBytes] and [MaxPayloadDepth]. JSON null is a payload; an
	// absent payload is an error, and so is what PostgreSQL's jsonb cannot hold, such as the character \u0000.
	Payload json.RawMessage `json:"payload"`
	// OccurredAt is when it happened, by the application's clock, in the years 1 to 9999. PostgreSQL keeps microseconds.
	OccurredAt time.Time `json:"occurredAt"`
	// Headers travel with the event; W3C traceparent and tracestate among them. Keys are lower-case tokens
	// ([a-z0-9._-], at most 64 bytes).
	Headers map[string]string `json:"headers,omitempty"`
}

// Validate reports every fault of the envelope as a [ValidationError], or nil.
func (e *Envelope) Validate() error {
	var faults []FieldError
	fault := func(field, found, allowed string) {
		faults = append(faults, FieldError{Field: field, Found: found, Allowed: allowed})
	}
	if e.ID == uuid.Nil {
		fault("id", "the nil UUID", "a UUID, such as the one event.New makes")
	}
	checkOrg(e.OrgID, fault)
	checkType(e.EventType, fault)
	if e.EventVersion < 1 {
		fault("eventVersion", fmt.Sprint(e.EventVersion), "1 or more")
	}
	for _, text := range []struct{ field, value string }{
		{"aggregateType", e.AggregateType}, {"aggregateId", e.AggregateID},
		{"correlationId", e.CorrelationID}, {"causationId", e.CausationID},
	} {
		checkText(text.field, text.value, fault)
	}
	checkTime(e.OccurredAt, fault)
	checkPayload(e.Payload, fault)
	checkHeaders(e.Headers, fault)
	if len(faults) > 0 {
		return &ValidationError{EventID: e.ID, Faults: faults}
	}
	return nil
}

func checkOrg(org string, fault func(field, found, allowed string)) {
	switch {
	case org == "":
		fault("orgId", "nothing", "the organisation the event belongs to")
	case len(org) > MaxTokenBytes:
		fault("orgId", fmt.Sprintf("%d bytes", len(org)), fmt.Sprintf("at most %d bytes", MaxTokenBytes))
	case !printable(org):
		fault("orgId", quote(org), "valid UTF-8 without control characters")
	}
}

func checkType(name string, fault func(field, found, allowed string)) {
	const allowed = "a letter, then letters, digits, '.', '_' or '-', at most 128 bytes"
	switch {
	case name == "":
		fault("eventType", "nothing", allowed)
	case len(name) > MaxTokenBytes:
		fault("eventType", fmt.Sprintf("%d bytes", len(name)), allowed)
	case !ValidType(name):
		fault("eventType", quote(name), allowed)
	}
}

func checkText(field, value string, fault func(field, found, allowed string)) {
	switch {
	case len(value) > MaxTextBytes:
		fault(field, fmt.Sprintf("%d bytes", len(value)), fmt.Sprintf("at most %d bytes", MaxTextBytes))
	case !printable(value):
		fault(field, quote(value), "valid UTF-8 without control characters")
	}
}

func checkTime(at time.Time, fault func(field, found, allowed string)) {
	switch year := at.UTC().Year(); {
	case at.Truncate(time.Microsecond).IsZero():
		fault("occurredAt", "no time", "when the event happened")
	case year < 1 || year > 9999:
		fault("occurredAt", fmt.Sprintf("the year %d", year), "a year from 1 to 9999")
	}
}

func checkPayload(payload json.RawMessage, fault func(field, found, allowed string)) {
	switch {
	case len(payload) == 0:
		fault("payload", "nothing", "a JSON document (null is one)")
		return
	case len(payload) > MaxPayloadBytes:
		fault("payload", fmt.Sprintf("%d bytes", len(payload)), payloadBytesAllowed)
		return
	case !utf8.Valid(payload) || !json.Valid(payload):
		fault("payload", "text that is not JSON", "one JSON document in UTF-8")
		return
	}
	size, problem := jsonbText(payload)
	switch {
	case problem != "":
		fault("payload", problem, "what PostgreSQL's jsonb can hold")
	case size > MaxPayloadBytes:
		fault("payload", fmt.Sprintf("%d bytes as PostgreSQL prints it", size), payloadBytesAllowed)
	}
}

var payloadBytesAllowed = fmt.Sprintf("at most %d bytes; put more in an object store and its address in the event",
	MaxPayloadBytes)

func checkHeaders(headers map[string]string, fault func(field, found, allowed string)) {
	if len(headers) > MaxHeaders {
		fault("headers", fmt.Sprintf("%d entries", len(headers)), fmt.Sprintf("at most %d", MaxHeaders))
		return
	}
	total := 0
	for _, key := range slices.Sorted(maps.Keys(headers)) {
		value := headers[key]
		total += len(key) + len(value)
		if !validHeaderKey(key) {
			fault("headers", "key "+quote(key), "1 to 64 of a-z, 0-9, '.', '_' and '-'")
		}
		if !printable(value) {
			fault("headers["+excerpt(key)+"]", quote(value), "valid UTF-8 without control characters")
		}
	}
	if total > MaxHeadersBytes {
		fault("headers", fmt.Sprintf("%d bytes", total), fmt.Sprintf("at most %d bytes in all", MaxHeadersBytes))
	}
}

// quote shows a value of the caller's in an error, and no more of it than a line holds.
func quote(value string) string { return strconv.Quote(excerpt(value)) }

func excerpt(value string) string {
	const most = 80
	if len(value) <= most {
		return value
	}
	return value[:most] + "…"
}

// ValidType reports whether name can be an event type: see [Envelope].EventType.
func ValidType(name string) bool {
	if name == "" || len(name) > MaxTokenBytes || !asciiLetter(name[0]) {
		return false
	}
	for i := 1; i < len(name); i++ {
		if c := name[i]; !asciiLetter(c) && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func asciiLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func validHeaderKey(key string) bool {
	if key == "" || len(key) > 64 {
		return false
	}
	for i := range len(key) {
		if c := key[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r < 0x20 || r == 0x7f {
			return false
		}
	}
	return true
}

// PayloadHash is the SHA-256 of a payload's bytes. The outbox computes the same over the text of its jsonb, which is
// what the relay publishes: compare hashes of published bodies, not of the bytes that a producer happened to send.
func PayloadHash(body []byte) [sha256.Size]byte { return sha256.Sum256(body) }

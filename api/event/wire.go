package event

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Message headers. Values are percent-encoded where a header could not carry them as they are: see [Encode].
const (
	HeaderMsgID            = "Nats-Msg-Id"
	HeaderEventID          = "RelayOps-Event-Id"
	HeaderOrg              = "RelayOps-Org"
	HeaderEventType        = "RelayOps-Event-Type"
	HeaderEventVersion     = "RelayOps-Event-Version"
	HeaderAggregateType    = "RelayOps-Aggregate-Type"
	HeaderAggregateID      = "RelayOps-Aggregate-Id"
	HeaderCorrelationID    = "RelayOps-Correlation-Id"
	HeaderCausationID      = "RelayOps-Causation-Id"
	HeaderOccurredAt       = "RelayOps-Occurred-At"
	HeaderOperationVersion = "RelayOps-Operation-Version"
	HeaderPayloadSHA256    = "RelayOps-Payload-Sha256"
	HeaderPosition         = "RelayOps-Position"
	HeaderPipeline         = "RelayOps-Pipeline"
	HeaderPayloadRef       = "RelayOps-Payload-Ref"
	HeaderExtraPrefix      = "RelayOps-Header-"
	HeaderTraceParent      = "traceparent"
	HeaderTraceState       = "tracestate"
)

// PayloadRefOutbox is the value of HeaderPayloadRef for a payload that stayed in the outbox (claim check): the
// consumer reads the row of the envelope's org and id.
const PayloadRefOutbox = "outbox"

// Delivery is an envelope together with what the relay knows of its publication.
type Delivery struct {
	Envelope
	// OperationVersion is 1 for a first publication; a reprocess publishes a higher one.
	OperationVersion int32
	// PayloadSHA256 is the hash that the outbox recorded for the payload.
	PayloadSHA256 [32]byte
	// Position is the row's insertion number in the outbox, 0 where a mapped table has none.
	Position int64
	// PipelineKey names the one pipeline that a reprocess is meant for; empty for every subscribed pipeline.
	PipelineKey string
	// PayloadRef is empty for a payload in the message's body, or [PayloadRefOutbox].
	PayloadRef string
}

// Encode gives the headers and the body of a delivery's message. The headers' type is that of nats.Header. The
// message id (HeaderMsgID) is msgID; the decision which one it is belongs to the relay.
func Encode(d *Delivery, msgID string) (headers map[string][]string, body []byte) {
	headers = make(map[string][]string, 16+len(d.Headers))
	set := func(name, value string) {
		if value != "" {
			headers[name] = []string{value}
		}
	}
	set(HeaderMsgID, msgID)
	set(HeaderEventID, d.ID.String())
	set(HeaderOrg, percentEncode(d.OrgID))
	set(HeaderEventType, d.EventType)
	set(HeaderEventVersion, strconv.FormatInt(int64(d.EventVersion), 10))
	set(HeaderAggregateType, percentEncode(d.AggregateType))
	set(HeaderAggregateID, percentEncode(d.AggregateID))
	set(HeaderCorrelationID, percentEncode(d.CorrelationID))
	set(HeaderCausationID, percentEncode(d.CausationID))
	set(HeaderOccurredAt, d.OccurredAt.UTC().Format(time.RFC3339Nano))
	set(HeaderOperationVersion, strconv.FormatInt(int64(d.OperationVersion), 10))
	set(HeaderPayloadSHA256, hex.EncodeToString(d.PayloadSHA256[:]))
	if d.Position > 0 {
		set(HeaderPosition, strconv.FormatInt(d.Position, 10))
	}
	set(HeaderPipeline, percentEncode(d.PipelineKey))
	for key, value := range d.Headers {
		switch key {
		case HeaderTraceParent, HeaderTraceState:
			headers[key] = []string{percentEncode(value)}
		default:
			headers[HeaderExtraPrefix+key] = []string{percentEncode(value)}
		}
	}
	if d.PayloadRef != "" {
		set(HeaderPayloadRef, d.PayloadRef)
		return headers, nil
	}
	return headers, d.Payload
}

// Decode reads what [Encode] wrote. Every failure is a [DecodeError] or a [ValidationError]; both wrap [ErrInvalid].
// A body that does not hash to the recorded hash is a DecodeError for HeaderPayloadSHA256. With a PayloadRef the
// payload is empty and not validated: the caller reads it, and checks it against PayloadSHA256.
func Decode(headers map[string][]string, body []byte) (*Delivery, error) {
	r := headerReader{headers: headers}
	d := &Delivery{
		Envelope: Envelope{
			ID:            r.uuid(HeaderEventID),
			OrgID:         r.text(HeaderOrg),
			EventType:     r.text(HeaderEventType),
			EventVersion:  int32(r.number(HeaderEventVersion, 1, 32)),
			AggregateType: r.text(HeaderAggregateType),
			AggregateID:   r.text(HeaderAggregateID),
			CorrelationID: r.text(HeaderCorrelationID),
			CausationID:   r.text(HeaderCausationID),
			OccurredAt:    r.time(HeaderOccurredAt),
			Headers:       r.extra(),
			Payload:       json.RawMessage(body),
		},
		OperationVersion: int32(r.number(HeaderOperationVersion, 1, 32)),
		PayloadSHA256:    r.hash(HeaderPayloadSHA256),
		Position:         r.number(HeaderPosition, 0, 64),
		PipelineKey:      r.text(HeaderPipeline),
		PayloadRef:       r.text(HeaderPayloadRef),
	}
	if r.err != nil {
		return nil, r.err
	}
	validated := d.Envelope
	switch d.PayloadRef {
	case "":
		if PayloadHash(body) != d.PayloadSHA256 {
			return nil, &DecodeError{HeaderPayloadSHA256, "the body has another hash"}
		}
	case PayloadRefOutbox:
		d.Payload, validated.Payload = nil, json.RawMessage("null")
	default:
		return nil, &DecodeError{HeaderPayloadRef, "unknown reference; allowed: " + PayloadRefOutbox}
	}
	if err := validated.Validate(); err != nil {
		return nil, err
	}
	return d, nil
}

// headerReader reads headers and keeps the first error.
type headerReader struct {
	headers map[string][]string
	err     error
}

func (r *headerReader) fail(header, problem string) {
	if r.err == nil {
		r.err = &DecodeError{header, problem}
	}
}

func (r *headerReader) raw(name string) string {
	values := r.headers[name]
	if len(values) > 1 {
		r.fail(name, "more than one value")
	}
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

func (r *headerReader) text(name string) string {
	text, err := percentDecode(r.raw(name))
	if err != nil {
		r.fail(name, err.Error())
	}
	return text
}

func (r *headerReader) uuid(name string) uuid.UUID {
	raw := r.raw(name)
	id, err := uuid.Parse(raw)
	if err != nil || len(raw) != 36 {
		r.fail(name, "not a UUID of 36 characters")
	}
	return id
}

// number reads a decimal of at most bits bits; an absent header is missing.
func (r *headerReader) number(name string, missing int64, bits int) int64 {
	raw := r.raw(name)
	if raw == "" {
		return missing
	}
	n, err := strconv.ParseInt(raw, 10, bits)
	if err != nil || n < 1 {
		r.fail(name, fmt.Sprintf("not a number from 1 to 2^%d-1", bits-1))
	}
	return n
}

func (r *headerReader) time(name string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, r.raw(name))
	if err != nil {
		r.fail(name, "not an RFC 3339 time")
	}
	return t
}

func (r *headerReader) hash(name string) (hash [32]byte) {
	raw := r.raw(name)
	if n, err := hex.Decode(hash[:], []byte(raw[:min(len(raw), 64)])); err != nil || n != 32 || len(raw) != 64 {
		r.fail(name, "not 64 hexadecimal digits")
	}
	return hash
}

func (r *headerReader) extra() map[string]string {
	var extra map[string]string
	for name := range r.headers {
		key, isExtra := strings.CutPrefix(name, HeaderExtraPrefix)
		if name == HeaderTraceParent || name == HeaderTraceState {
			key, isExtra = name, true
		}
		if !isExtra {
			continue
		}
		if name == HeaderExtraPrefix+HeaderTraceParent || name == HeaderExtraPrefix+HeaderTraceState {
			r.fail(name, "allowed: "+key+" without the prefix")
		}
		if extra == nil {
			extra = make(map[string]string)
		}
		extra[key] = r.text(name)
	}
	return extra
}

// percentEncode follows the CloudEvents NATS binding 1.0.2, section 3.2.3.1: bytes outside '!'..'~', '"' and '%'
// become %XX, so that white space at the ends and UTF-8 survive the broker's header parser.
func percentEncode(value string) string {
	plain := true
	for i := range len(value) {
		if !headerByte(value[i]) {
			plain = false
			break
		}
	}
	if plain {
		return value
	}
	var b strings.Builder
	for i := range len(value) {
		if c := value[i]; headerByte(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		}
	}
	return b.String()
}

func headerByte(c byte) bool { return c > 0x20 && c < 0x7f && c != '%' && c != '"' }

func percentDecode(value string) (string, error) {
	if !strings.Contains(value, "%") {
		return value, nil
	}
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] != '%' {
			b.WriteByte(value[i])
			continue
		}
		if i+2 >= len(value) {
			return "", fmt.Errorf("a cut percent escape")
		}
		decoded, err := hex.DecodeString(value[i+1 : i+3])
		if err != nil {
			return "", fmt.Errorf("a percent escape that is not hexadecimal")
		}
		b.WriteByte(decoded[0])
		i += 2
	}
	return b.String(), nil
}

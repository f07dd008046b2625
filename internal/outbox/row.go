package outbox

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/relayops/relayops/api/event"
)

// Row is one claimed event.
type Row struct {
	// Delivery is what is to be published. With a PayloadRef its payload was not read.
	event.Delivery
	// Attempts is how many event-specific failures it had before this claim.
	Attempts int32
	// Fault says why the row is no valid event; nil for a valid one. Delivery is then incomplete.
	Fault error

	place   pgtype.TID
	org, id string
}

// EventID is the row's event id as the table has it, at most 64 bytes: a row with a Fault may hold any text there.
func (r *Row) EventID() string { return strings.ToValidUTF8(r.id[:min(len(r.id), 64)], "") }

// scanned is a row as the database gives it.
type scanned struct {
	place                                                                               pgtype.TID
	id, org, eventType, aggregateType, aggregateID, correlationID, causationID, headers string
	version, operationVersion, attempts                                                 int32
	occurredAt                                                                          *int64
	position                                                                            int64
	bytes                                                                               int32
	body, hash                                                                          []byte
}

// envelope are the scan targets of envelopeColumns.
func (s *scanned) envelope() []any {
	return []any{
		&s.id, &s.org, &s.eventType, &s.version, &s.aggregateType, &s.aggregateID, &s.correlationID,
		&s.causationID, &s.headers, &s.occurredAt, &s.operationVersion, &s.position, &s.attempts,
	}
}

// row makes a claimed row of what was scanned; see delivery.
func (s *scanned) row(trusted bool) Row {
	row := Row{Attempts: s.attempts, place: s.place, org: s.org, id: s.id}
	row.Delivery, row.Fault = s.delivery(trusted)
	if s.body == nil {
		row.PayloadRef = event.PayloadRefOutbox
	}
	return row
}

// delivery makes an event of the row, with every fault found. trusted: the table's constraints vouch for the payload.
func (s *scanned) delivery(trusted bool) (event.Delivery, error) {
	d := event.Delivery{
		Envelope: event.Envelope{
			OrgID: s.org, EventType: s.eventType, EventVersion: s.version,
			AggregateType: s.aggregateType, AggregateID: s.aggregateID,
			CorrelationID: s.correlationID, CausationID: s.causationID,
			Payload: s.body,
		},
		OperationVersion: s.operationVersion,
		Position:         s.position,
	}
	var err error
	if d.ID, err = uuid.Parse(s.id); err != nil {
		return d, fmt.Errorf("%w: event_id is no UUID", event.ErrInvalid)
	}
	if s.occurredAt == nil {
		return d, fmt.Errorf("%w: occurred_at is no time", event.ErrInvalid)
	}
	d.OccurredAt = time.UnixMicro(*s.occurredAt).UTC()
	if s.headers != "{}" {
		if err := json.Unmarshal([]byte(s.headers), &d.Headers); err != nil {
			return d, fmt.Errorf("%w: headers are no object of texts", event.ErrInvalid)
		}
	}
	if len(s.hash) != len(d.PayloadSHA256) {
		return d, fmt.Errorf("%w: payload_sha256 has %d bytes", event.ErrInvalid, len(s.hash))
	}
	copy(d.PayloadSHA256[:], s.hash)
	if d.OperationVersion < 1 {
		return d, fmt.Errorf("%w: operation_version is below 1", event.ErrInvalid)
	}
	if s.bytes < 1 || s.bytes > event.MaxPayloadBytes {
		return d, fmt.Errorf("%w: payload has %d bytes", event.ErrInvalid, s.bytes)
	}
	checked := d.Envelope
	if s.body == nil || trusted {
		checked.Payload = json.RawMessage("null")
	}
	return d, checked.Validate()
}

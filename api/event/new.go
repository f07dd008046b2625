package event

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// New makes an envelope with a fresh UUIDv7, version 1 and the current time. The payload is marshalled with
// encoding/json, or taken as it is when it is a json.RawMessage; a payload that cannot be marshalled is a
// [ValidationError] for the field payload.
func New(org, eventType string, payload any) (Envelope, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Envelope{}, fmt.Errorf("make an event id: %w", err)
	}
	body, isRaw := payload.(json.RawMessage)
	if !isRaw {
		if body, err = json.Marshal(payload); err != nil {
			return Envelope{}, &ValidationError{EventID: id, Faults: []FieldError{{
				Field: "payload", Found: fmt.Sprintf("a %T that does not marshal (%v)", payload, err), Allowed: "a JSON document",
			}}}
		}
	}
	return Envelope{
		ID: id, OrgID: org, EventType: eventType, EventVersion: 1,
		Payload: body, OccurredAt: time.Now().UTC(),
	}, nil
}

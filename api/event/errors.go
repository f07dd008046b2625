package event

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// ErrInvalid is wrapped by every [ValidationError] and every [DecodeError].
var ErrInvalid = errors.New("invalid event")

// FieldError is one fault of one field: what was found and what is allowed.
type FieldError struct{ Field, Found, Allowed string }

func (f FieldError) String() string {
	return fmt.Sprintf("%s: found %s, allowed: %s", f.Field, f.Found, f.Allowed)
}

// ValidationError lists every fault of one envelope. It wraps [ErrInvalid].
type ValidationError struct {
	EventID uuid.UUID
	Faults  []FieldError
}

func (v *ValidationError) Error() string {
	parts := make([]string, len(v.Faults))
	for i, fault := range v.Faults {
		parts[i] = fault.String()
	}
	return fmt.Sprintf("invalid event %s: %s", v.EventID, strings.Join(parts, "; "))
}

func (v *ValidationError) Unwrap() error { return ErrInvalid }

// Has reports whether field is among the faults.
func (v *ValidationError) Has(field string) bool {
	for _, fault := range v.Faults {
		if fault.Field == field {
			return true
		}
	}
	return false
}

// DecodeError says which header of a message could not be read as part of an envelope. It wraps [ErrInvalid] and
// never holds a value that the message carried, only its shape.
type DecodeError struct{ Header, Problem string }

func (d *DecodeError) Error() string {
	return fmt.Sprintf("invalid event: header %s: %s", d.Header, d.Problem)
}

func (d *DecodeError) Unwrap() error { return ErrInvalid }

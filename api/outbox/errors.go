package outbox

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrPayloadConflict is wrapped by every [ConflictError].
var ErrPayloadConflict = errors.New("payload conflict")

// ConflictError says that the outbox holds an event of this key with another payload. Nothing of this event was
// written; the caller's transaction is still usable. It wraps [ErrPayloadConflict].
type ConflictError struct {
	OrgID   string
	EventID uuid.UUID
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("event %s of org %q exists with another payload: one id stands for one payload", e.EventID, e.OrgID)
}

func (e *ConflictError) Unwrap() error { return ErrPayloadConflict }

// maxErrors bounds how many faulty events one error describes.
const maxErrors = 10

// join joins the errors of many events into one that a person can still read.
func join(faults []error) error {
	if len(faults) > maxErrors {
		faults = append(faults[:maxErrors:maxErrors], fmt.Errorf("and %d more", len(faults)-maxErrors))
	}
	return errors.Join(faults...)
}

// explain wraps a database error, with what to do about those that a wrong set-up gives.
func (w *Writer) explain(err error) error {
	advice := ""
	// *pgconn.PgError of pgx and *pq.Error of lib/pq both have it.
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		switch coded.SQLState() {
		case "3F000", "42P01", "42883":
			if w.table.Mapped() {
				advice = ": the table is not there, check WithTable"
			} else {
				advice = ": the schema is not there or older than this program, run `relayops migrate up`"
			}
		case "42703":
			advice = ": a column is not there, check WithTable"
		case "42501":
			advice = ": the role lacks a right, see the grants in docs/producers.md"
		case "23502":
			advice = ": the table wants a value that the event does not have"
		case "40001", "40P01":
			advice = ": try the transaction again"
		case "25006":
			advice = ": the transaction is read-only"
		}
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "23502" && refused.ColumnName != "" {
		advice += fmt.Sprintf(" (column %s)", refused.ColumnName)
	}
	return fmt.Errorf("write events to %s%s: %w", w.table, advice, err)
}

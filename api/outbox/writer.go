package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/propagation"

	"github.com/relayops/relayops/api/event"
)

// Writer writes events to one outbox table. It holds no connection, and any number of goroutines may use it.
type Writer struct {
	table   Table
	sql     statements
	ordered bool
}

// Option changes a [Writer].
type Option func(*Writer)

// WithTable writes to a table of the application's own instead of relayops.outbox_events.
func WithTable(table Table) Option { return func(w *Writer) { w.table = table } }

// Ordered makes the writers of one aggregate wait for each other: from the write to the end of its transaction no other
// ordered writer gets past its own write for the same organisation, aggregate type and aggregate id. Events of an
// aggregate are then numbered in the order in which their transactions commit. It costs a round trip.
func Ordered() Option { return func(w *Writer) { w.ordered = true } }

// NewWriter makes a Writer. The error lists every mistake of the table's mapping; whether the table exists shows when
// it is written to.
func NewWriter(options ...Option) (*Writer, error) {
	w := &Writer{}
	for _, option := range options {
		option(w)
	}
	if err := w.table.Validate(); err != nil {
		return nil, err
	}
	w.sql = newStatements(w.table)
	return w, nil
}

var standard = &Writer{sql: newStatements(Table{})}

// Write writes events to relayops.outbox_events in the caller's transaction, in one round trip. They become visible,
// and are published, when the transaction commits; if it rolls back they never existed.
//
// Events that the table holds already with the same payload are left as they are. Errors:
//
//   - [event.ValidationError], one for each invalid event (errors.As finds the first): nothing was sent
//   - [ConflictError], one for each event whose key exists with another payload, in the table or among events
//   - a database error, wrapped: the transaction has failed, and has to be rolled back
//
// The W3C trace context of ctx travels in an event's Headers, unless they have a traceparent of their own.
func Write(ctx context.Context, tx pgx.Tx, events ...event.Envelope) error {
	return standard.Write(ctx, tx, events...)
}

// WriteSQL is [Write] in a transaction of database/sql, with any driver for PostgreSQL.
func WriteSQL(ctx context.Context, tx *sql.Tx, events ...event.Envelope) error {
	return standard.WriteSQL(ctx, tx, events...)
}

// Write is the function [Write] for the Writer's table.
func (w *Writer) Write(ctx context.Context, tx pgx.Tx, events ...event.Envelope) error {
	return w.write(ctx, pgxTx{tx}, events)
}

// WriteSQL is the function [WriteSQL] for the Writer's table.
func (w *Writer) WriteSQL(ctx context.Context, tx *sql.Tx, events ...event.Envelope) error {
	return w.write(ctx, sqlTx{tx}, events)
}

func (w *Writer) write(ctx context.Context, tx transaction, events []event.Envelope) error {
	if len(events) == 0 {
		return nil
	}
	events, err := w.prepare(ctx, events)
	if err != nil {
		return err
	}
	if w.ordered {
		if err := w.lockAggregates(ctx, tx, events); err != nil {
			return err
		}
	}
	var conflicts []error
	for _, chunk := range chunks(events) {
		refused, err := w.insert(ctx, tx, chunk)
		if err != nil {
			return w.explain(err)
		}
		conflicts = append(conflicts, refused...)
	}
	return join(conflicts)
}

// prepare gives the events as they are written, with the trace context of ctx, or what is wrong with them.
func (w *Writer) prepare(ctx context.Context, events []event.Envelope) ([]event.Envelope, error) {
	trace := make(propagation.MapCarrier)
	if w.sql.has("headers") {
		propagation.TraceContext{}.Inject(ctx, trace)
	}
	prepared := make([]event.Envelope, len(events))
	var faults []error
	for i := range events {
		prepared[i] = withTrace(events[i], trace)
		err := prepared[i].Validate()
		if err == nil {
			err = w.fits(&prepared[i])
		}
		if err != nil {
			if len(events) > 1 {
				err = fmt.Errorf("events[%d]: %w", i, err)
			}
			faults = append(faults, err)
		}
	}
	return prepared, join(faults)
}

// withTrace adds the trace context to an event that has none and has room for it.
func withTrace(envelope event.Envelope, trace propagation.MapCarrier) event.Envelope {
	if _, hasTrace := envelope.Headers[event.HeaderTraceParent]; hasTrace || len(trace) == 0 {
		return envelope
	}
	headers := make(map[string]string, len(envelope.Headers)+len(trace))
	maps.Copy(headers, envelope.Headers)
	delete(headers, event.HeaderTraceState) // It belongs to a parent that is not there.
	maps.Copy(headers, trace)
	size := 0
	for key, value := range headers {
		size += len(key) + len(value)
	}
	if len(headers) <= event.MaxHeaders && size <= event.MaxHeadersBytes {
		envelope.Headers = headers
	}
	return envelope
}

// fits reports the fields of the event that a mapped table has no column for.
func (w *Writer) fits(envelope *event.Envelope) error {
	var faults []event.FieldError
	for _, field := range fields {
		if field.needed(envelope) && !w.sql.has(field.column) {
			faults = append(faults, event.FieldError{
				Field: field.name, Found: "a value", Allowed: fmt.Sprintf("none: %s has no column for it", w.table),
			})
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return &event.ValidationError{EventID: envelope.ID, Faults: faults}
}

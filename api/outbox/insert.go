package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/relayops/relayops/api/event"
)

// Bounds of one statement: rows, and bytes of payload (PostgreSQL's protocol ends at 1 GiB).
const (
	chunkEvents = 10_000
	chunkBytes  = 32 << 20
)

// chunks cuts events into pieces of one statement each, in order; all that is usual is one piece.
func chunks(events []event.Envelope) [][]event.Envelope {
	var pieces [][]event.Envelope
	from, size := 0, 0
	for i := range events {
		if i > from && (i-from == chunkEvents || size+len(events[i].Payload) > chunkBytes) {
			pieces = append(pieces, events[from:i])
			from, size = i, 0
		}
		size += len(events[i].Payload)
	}
	return append(pieces, events[from:])
}

// insert writes one chunk and gives the conflicts among it.
//
//	INSERT … DO NOTHING ─► all rows new ─► done (one round trip)
//	        │ fewer rows
//	        ▼
//	     settle: compare with what is there ─┬─ same payload ─► nothing to do
//	                                         ├─ another ──────► ConflictError
//	                                         └─ no row ───────► INSERT without DO NOTHING, which says why
//
// A transaction that holds the same key makes the INSERT wait until it ends; the comparison, a statement of its own,
// then sees what it committed. (Under REPEATABLE READ the INSERT fails instead, with serialization_failure.)
// No row is there when the retention removed it meanwhile, or when another unique key of a mapped table is in the way.
func (w *Writer) insert(ctx context.Context, tx transaction, events []event.Envelope) (conflicts []error, err error) {
	var written int64
	if len(events) == 1 && w.sql.one != "" {
		written, err = tx.exec(ctx, w.sql.one, true, parameters(&events[0])...)
	} else {
		var arrays []string
		if arrays, err = w.arrays(events); err == nil {
			written, err = tx.exec(ctx, w.sql.many, false, arrays...)
		}
	}
	if err != nil || written == int64(len(events)) {
		return nil, err
	}
	arrays, err := w.arrays(events)
	if err != nil {
		return nil, err
	}
	var missing []event.Envelope
	err = tx.query(ctx, w.sql.settle, func(n int64, isMissing bool) {
		if one := events[n-1]; isMissing {
			missing = append(missing, one)
		} else {
			conflicts = append(conflicts, &ConflictError{OrgID: one.OrgID, EventID: one.ID})
		}
	}, arrays...)
	if err != nil || len(missing) == 0 {
		return conflicts, err
	}
	if arrays, err = w.arrays(missing); err == nil {
		_, err = tx.exec(ctx, w.sql.insist, false, arrays...)
	}
	return conflicts, err
}

// parameters are those of statements.one: a text for each of fields.
func parameters(e *event.Envelope) []string {
	texts := make([]string, len(fields))
	for i, field := range fields {
		texts[i] = field.text(e)
	}
	return texts
}

func headersText(e *event.Envelope) string {
	if len(e.Headers) == 0 {
		return "{}"
	}
	encoded, err := json.Marshal(e.Headers)
	if err != nil {
		panic(fmt.Sprintf("outbox: strings that do not marshal: %v", err))
	}
	return string(encoded)
}

// timestamp is a time as PostgreSQL reads it, whether the column has a time zone or holds UTC.
func timestamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.999999Z") }

// arrays are the parameters of the other statements: metadata and payloads, as the text of PostgreSQL arrays.
func (w *Writer) arrays(events []event.Envelope) ([]string, error) {
	var metadata, payloads arrayText
	for i := range events {
		meta, err := w.metadata(&events[i])
		if err != nil {
			return nil, err
		}
		metadata.add(meta)
		payloads.add(events[i].Payload)
	}
	return []string{metadata.String(), payloads.String()}, nil
}

// metadata is the event's row without its payload. A text that is empty is left out of a mapped table's: its column
// may be one that cannot be empty, such as a uuid (see statements.defaults).
func (w *Writer) metadata(e *event.Envelope) ([]byte, error) {
	row := make(map[string]any, len(fields))
	for _, field := range fields {
		name, exists := w.sql.columns[field.column]
		if !exists || field.column == "payload" {
			continue
		}
		switch text := field.text(e); {
		case field.column == "headers":
			row[name] = json.RawMessage(text)
		case text != "" || !w.table.Mapped():
			row[name] = text
		}
	}
	meta, err := json.Marshal(row)
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", e.ID, err)
	}
	return meta, nil
}

// arrayText is a one-dimensional array of texts, as PostgreSQL reads it.
type arrayText struct{ b strings.Builder }

func (a *arrayText) add(element []byte) {
	if a.b.Len() == 0 {
		a.b.WriteByte('{')
	} else {
		a.b.WriteByte(',')
	}
	a.b.WriteByte('"')
	for _, c := range element {
		if c == '"' || c == '\\' {
			a.b.WriteByte('\\')
		}
		a.b.WriteByte(c)
	}
	a.b.WriteByte('"')
}

func (a *arrayText) String() string {
	if a.b.Len() == 0 {
		return "{}"
	}
	return a.b.String() + "}"
}

// lockAggregates takes the locks of emit_event's ordered => true, in one order for everybody, so that two writers of
// several aggregates do not wait for each other for ever.
func (w *Writer) lockAggregates(ctx context.Context, tx transaction, events []event.Envelope) error {
	const lock = `SELECT 1, pg_advisory_xact_lock(key) IS NULL FROM (
		SELECT DISTINCT hashtextextended(org || chr(1) || type || chr(1) || id, 0) AS key
		FROM unnest($1::text[], $2::text[], $3::text[]) AS e(org, type, id) ORDER BY key) AS keys`
	var orgs, types, ids arrayText
	for i := range events {
		orgs.add([]byte(events[i].OrgID))
		types.add([]byte(events[i].AggregateType))
		ids.add([]byte(events[i].AggregateID))
	}
	if err := tx.query(ctx, lock, func(int64, bool) {}, orgs.String(), types.String(), ids.String()); err != nil {
		return w.explain(fmt.Errorf("lock the events' aggregates: %w", err))
	}
	return nil
}

package trace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/api/outbox"
)

// DB is a *pgx.Conn or a *pgxpool.Pool.
type DB interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Load reads the story of an event. An empty org stands for the one that has it. tables are the outboxes to look in;
// none: relayops.outbox_events alone. Errors: [NotFoundError], [AmbiguousError], or the database's own, wrapped.
func Load(ctx context.Context, db DB, eventID uuid.UUID, org string, tables ...outbox.Table) (Story, error) {
	if len(tables) == 0 {
		tables = []outbox.Table{{}}
	}
	var story Story
	err := snapshot(ctx, db, func(tx pgx.Tx) error {
		var err error
		story, err = (&loader{tx: tx, id: eventID, org: org, tables: tables}).load(ctx)
		return err
	})
	return story, err
}

// snapshot runs read in a transaction that sees one state of the database and changes nothing.
func snapshot(ctx context.Context, db DB, read func(pgx.Tx) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, db, options, read)
}

// loader reads one story.
type loader struct {
	tx     pgx.Tx
	id     uuid.UUID
	org    string
	tables []outbox.Table
}

func (l *loader) load(ctx context.Context) (Story, error) {
	rows, err := l.outboxRows(ctx)
	if err != nil {
		return Story{}, err
	}
	executions, err := l.executions(ctx)
	if err != nil {
		return Story{}, err
	}
	deadLetters, err := l.deadLetters(ctx)
	if err != nil {
		return Story{}, err
	}
	if err := l.settleOrg(rows, executions, deadLetters); err != nil {
		return Story{}, err
	}
	story := Story{Executions: executions}
	switch {
	case len(rows) > 0:
		story.Event, story.Publication = rows[0].event, &rows[0].publication
	default:
		if story.Event, err = l.eventWithoutOutbox(ctx, executions, deadLetters); err != nil {
			return Story{}, err
		}
	}
	if err := l.addSteps(ctx, story.Executions); err != nil {
		return Story{}, err
	}
	story.DeadLetters = attachDeadLetters(story.Executions, deadLetters)
	return story, nil
}

// settleOrg finds the one organisation that everything read belongs to.
func (l *loader) settleOrg(rows []outboxRow, executions []Execution, deadLetters []DeadLetter) error {
	orgs := map[string]bool{}
	for _, row := range rows {
		orgs[row.event.OrgID] = true
	}
	for _, execution := range executions {
		orgs[execution.OrgID] = true
	}
	for _, letter := range deadLetters {
		orgs[letter.OrgID] = true
	}
	switch names := slices.Sorted(maps.Keys(orgs)); len(names) {
	case 0:
		return &NotFoundError{EventID: l.id, OrgID: l.org}
	case 1:
		l.org = names[0]
		return nil
	default:
		return &AmbiguousError{EventID: l.id, OrgIDs: names}
	}
}

// eventWithoutOutbox makes the event of what the payload store, the ledger or a dead letter knows.
func (l *loader) eventWithoutOutbox(ctx context.Context, executions []Execution, letters []DeadLetter) (Event, error) {
	event := Event{ID: l.id, OrgID: l.org}
	const query = `
		SELECT event_type, aggregate_type, aggregate_id, correlation_id, trace_parent, occurred_at
		FROM relayops.pipeline_executions WHERE org_id = $1 AND event_id = $2 ORDER BY created_at LIMIT 1`
	switch {
	case len(executions) > 0:
		err := l.tx.QueryRow(ctx, query, l.org, l.id).Scan(&event.Type, &event.AggregateType, &event.AggregateID,
			&event.CorrelationID, &event.TraceParent, &event.OccurredAt)
		if err != nil {
			return Event{}, fmt.Errorf("read the ledger: %w", err)
		}
	case len(letters) > 0:
		event.Type = letters[0].EventType
	}
	err := l.addFromPayloadStore(ctx, &event)
	return event, err
}

// addFromPayloadStore adds what only a kept envelope knows.
func (l *loader) addFromPayloadStore(ctx context.Context, event *Event) error {
	const query = `
		SELECT coalesce(envelope->>'causationId', ''), coalesce((envelope->>'eventVersion')::integer, 0)
		FROM relayops.event_payloads WHERE org_id = $1 AND event_id = $2`
	err := l.tx.QueryRow(ctx, query, l.org, l.id).Scan(&event.CausationID, &event.Version)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("read the payload store: %w", err)
	}
	return nil
}

// attachDeadLetters gives each execution its dead letter, and returns the letters that have no execution.
func attachDeadLetters(executions []Execution, letters []DeadLetter) []DeadLetter {
	var alone []DeadLetter
	for _, letter := range letters {
		i := slices.IndexFunc(executions, func(e Execution) bool {
			return letter.ExecutionID != nil && e.ID == *letter.ExecutionID
		})
		if i < 0 {
			alone = append(alone, letter)
			continue
		}
		executions[i].DeadLetter = &letter
	}
	return alone
}

// fromMicroseconds is the time that outbox.Table's Read gives as microseconds since 1970.
func fromMicroseconds(microseconds *int64) *time.Time {
	if microseconds == nil {
		return nil
	}
	t := time.UnixMicro(*microseconds).UTC()
	return &t
}

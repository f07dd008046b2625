package trace

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/api/outbox"
)

// outboxRow is what an outbox says of an event.
type outboxRow struct {
	event       Event
	publication Publication
}

// outboxRows reads the rows of the event in all outboxes: one for each organisation that has it.
func (l *loader) outboxRows(ctx context.Context) ([]outboxRow, error) {
	var all []outboxRow
	for _, table := range l.tables {
		found, err := l.rowsOf(ctx, table)
		if err != nil {
			return nil, fmt.Errorf("read the outbox %s: %w", table, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

func (l *loader) rowsOf(ctx context.Context, table outbox.Table) ([]outboxRow, error) {
	query, args := rowsQuery(table, l.id, l.org)
	result, err := l.tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(result, func(row pgx.CollectableRow) (outboxRow, error) { return scanRow(row, table, l.id) })
}

// rowColumns are what scanRow scans, in its order.
var rowColumns = []string{
	"org_id", "event_type", "event_version", "aggregate_type", "aggregate_id", "correlation_id", "causation_id",
	"occurred_at", "created_at", "status", "attempts", "last_error", "available_at", "published_at", "stream",
	"stream_seq",
}

func rowsQuery(table outbox.Table, id uuid.UUID, org string) (query string, args []any) {
	columns := make([]string, 0, len(rowColumns)+1)
	for _, name := range rowColumns {
		columns = append(columns, table.Read("o", name))
	}
	headers := table.Read("o", "headers")
	columns = append(columns, "coalesce(("+headers+")::jsonb->>'traceparent', '')")
	orgColumn, _ := table.Column("org_id")
	idColumn, _ := table.Column("event_id")
	from := table.Identifier() + " o"
	where := "o." + idColumn + " = $1"
	args = []any{id.String()}
	switch {
	case org != "":
		where += " AND o." + orgColumn + " = $2"
		args = append(args, org)
	case !table.Mapped():
		// The key begins with the organisation: visit each one that has a row, rather than every row.
		from = "orgs JOIN relayops.outbox_events o ON o.org_id = orgs.org_id"
		query = everyOrg
	}
	return query + "SELECT " + strings.Join(columns, ", ") + " FROM " + from + " WHERE " + where, args
}

const everyOrg = `WITH RECURSIVE orgs AS (
	(SELECT org_id FROM relayops.outbox_events ORDER BY org_id LIMIT 1)
	UNION ALL
	SELECT (SELECT o.org_id FROM relayops.outbox_events o WHERE o.org_id > orgs.org_id ORDER BY o.org_id LIMIT 1)
	FROM orgs WHERE orgs.org_id IS NOT NULL
) `

func scanRow(row pgx.CollectableRow, table outbox.Table, id uuid.UUID) (outboxRow, error) {
	e := Event{ID: id}
	p := Publication{Table: table.String()}
	var occurred, created, available, published *int64
	err := row.Scan(&e.OrgID, &e.Type, &e.Version, &e.AggregateType, &e.AggregateID, &e.CorrelationID, &e.CausationID,
		&occurred, &created, &p.Status, &p.FailedAttempts, &p.LastError, &available, &published, &p.Stream,
		&p.StreamSeq, &e.TraceParent)
	if err != nil {
		return outboxRow{}, err
	}
	e.OccurredAt, e.CommittedAt = fromMicroseconds(occurred), fromMicroseconds(created)
	p.AvailableAt, p.PublishedAt = fromMicroseconds(available), fromMicroseconds(published)
	p.Lag = between(e.CommittedAt, p.PublishedAt)
	return outboxRow{event: e, publication: p}, nil
}

// between is the time from one moment to another, nil where one is not known. Clocks of two machines may disagree:
// it is never negative.
func between(from, to *time.Time) *Milliseconds {
	if from == nil || to == nil {
		return nil
	}
	passed := Milliseconds(max(0, to.Sub(*from)))
	return &passed
}

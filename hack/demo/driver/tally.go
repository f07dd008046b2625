package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// tally is what the database says at one moment.
type tally struct {
	// Orders of the application, and rows of the outbox.
	Orders, Committed int
	Published, Failed int
	// Executions by what became of them; Retrying are those in or between attempts after the first.
	Succeeded, Retrying, Running, DeadLettered, Cancelled int
	// RetriedAndSucceeded succeeded in a later attempt than their first.
	RetriedAndSucceeded int
}

// settled is how many executions have come to an end.
func (t tally) settled() int { return t.Succeeded + t.DeadLettered + t.Cancelled }

const tallyQuery = `
	SELECT (SELECT count(*) FROM shop.orders), o.committed, o.published, o.failed, e.succeeded, e.retrying, e.running,
		e.dead_lettered, e.cancelled, e.retried_and_succeeded
	FROM (
		SELECT count(*) AS committed, count(*) FILTER (WHERE status = 'PUBLISHED') AS published,
			count(*) FILTER (WHERE status = 'FAILED') AS failed
		FROM relayops.outbox_events) o,
	(
		SELECT count(*) FILTER (WHERE state = 'SUCCEEDED') AS succeeded,
			count(*) FILTER (WHERE state = 'RETRY' OR state = 'RUNNING' AND attempt > 1) AS retrying,
			count(*) FILTER (WHERE state = 'RUNNING' AND attempt <= 1) AS running,
			count(*) FILTER (WHERE state = 'DEAD_LETTERED') AS dead_lettered,
			count(*) FILTER (WHERE state = 'CANCELLED') AS cancelled,
			count(*) FILTER (WHERE state = 'SUCCEEDED' AND attempt > 1) AS retried_and_succeeded
		FROM relayops.pipeline_executions) e`

func readTally(ctx context.Context, conn *pgx.Conn) (tally, error) {
	var t tally
	err := conn.QueryRow(ctx, tallyQuery).Scan(&t.Orders, &t.Committed, &t.Published, &t.Failed, &t.Succeeded,
		&t.Retrying, &t.Running, &t.DeadLettered, &t.Cancelled, &t.RetriedAndSucceeded)
	if err != nil {
		return tally{}, fmt.Errorf("count: %w", err)
	}
	return t, nil
}

// missing counts committed events without a terminal execution, event by event: equal sums alone could hide two
// mistakes.
func missing(ctx context.Context, conn *pgx.Conn) (n int, err error) {
	err = conn.QueryRow(ctx, `
		SELECT count(*) FROM relayops.outbox_events o WHERE NOT EXISTS (
			SELECT 1 FROM relayops.pipeline_executions e
			WHERE e.org_id = o.org_id AND e.event_id = o.event_id
				AND e.state IN ('SUCCEEDED', 'DEAD_LETTERED', 'CANCELLED'))`).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("look for events without an end: %w", err)
	}
	return n, nil
}

// phantoms counts traces of events whose transaction rolled back, and executions of events that nobody committed.
func phantoms(ctx context.Context, conn *pgx.Conn, rolledBack []uuid.UUID) (n int, err error) {
	err = conn.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM relayops.outbox_events WHERE event_id = ANY($1))
			+ (SELECT count(*) FROM relayops.pipeline_executions e WHERE NOT EXISTS (
				SELECT 1 FROM relayops.outbox_events o WHERE o.org_id = e.org_id AND o.event_id = e.event_id))`,
		rolledBack).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("look for phantoms: %w", err)
	}
	return n, nil
}

// example names an event and its organisation.
type example struct {
	event uuid.UUID
	org   string
}

// retriedExample is an event that succeeded after the most attempts, the first of them; false if none was retried.
func retriedExample(ctx context.Context, conn *pgx.Conn) (found example, exists bool, err error) {
	return oneExample(ctx, conn, `SELECT event_id, org_id FROM relayops.pipeline_executions
		WHERE state = 'SUCCEEDED' AND attempt > 1 ORDER BY attempt DESC, created_at LIMIT 1`)
}

// deadExample is the first dead letter's event.
func deadExample(ctx context.Context, conn *pgx.Conn) (found example, exists bool, err error) {
	return oneExample(ctx, conn, `SELECT event_id, org_id FROM relayops.pipeline_executions
		WHERE state = 'DEAD_LETTERED' ORDER BY created_at LIMIT 1`)
}

func oneExample(ctx context.Context, conn *pgx.Conn, query string) (found example, exists bool, err error) {
	err = conn.QueryRow(ctx, query).Scan(&found.event, &found.org)
	if errors.Is(err, pgx.ErrNoRows) {
		return example{}, false, nil
	}
	if err != nil {
		return example{}, false, fmt.Errorf("look for an example: %w", err)
	}
	return found, true, nil
}

// orderNumbers are the numbers of all orders that the application has.
func orderNumbers(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	rows, err := conn.Query(ctx, "SELECT number FROM shop.orders")
	if err != nil {
		return nil, fmt.Errorf("read the orders: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

package limit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/nats-io/nats.go"

	"github.com/relayops/relayops/api/event"
)

// row is a claimed event: where it is, and what is sent.
type row struct {
	place    pgtype.TID
	delivery event.Delivery
}

const columns = `ctid, event_id, org_id, event_type, event_version, aggregate_type, aggregate_id, correlation_id,
	causation_id, payload::text, payload_sha256, headers::text, occurred_at, operation_version, position`

const due = `SELECT ` + columns + ` FROM relayops.outbox_events
	WHERE status = 'PENDING' AND available_at <= now() ORDER BY available_at, position LIMIT $1 FOR UPDATE SKIP LOCKED`

// mark finds the rows by their place: they are locked, so it cannot change, and no index is needed.
const mark = `UPDATE relayops.outbox_events o
	SET status = 'PUBLISHED', published_at = now(), stream = $1, stream_seq = m.sequence
	FROM unnest($2::tid[], $3::bigint[]) AS m(place, sequence) WHERE o.ctid = m.place`

// inTransaction claims, publishes and marks one batch in one transaction, and gives its size.
func (c *claimer) inTransaction(ctx context.Context) (int, error) {
	tx, err := c.conn.Begin(ctx)
	if err != nil {
		return 0, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // After a commit it does nothing.
	if err := c.read(ctx, tx, due, c.spec.Batch); err != nil || len(c.rows) == 0 {
		return 0, err
	}
	if err := c.publish(ctx); err != nil {
		return 0, err
	}
	if _, err := tx.Exec(ctx, mark, c.spec.Stream, c.places(), c.sequences); err != nil {
		return 0, fmt.Errorf("mark: %w", err)
	}
	if err := tx.Commit(ctx); err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	return len(c.rows), nil
}

// lease claims rows for a time by moving available_at, in a transaction that commits at once.
const lease = `UPDATE relayops.outbox_events o SET available_at = now() + interval '1 minute'
	FROM (SELECT org_id AS org, event_id AS id FROM relayops.outbox_events
		WHERE status = 'PENDING' AND available_at <= now() ORDER BY available_at, position LIMIT $1 FOR UPDATE SKIP LOCKED) d
	WHERE o.org_id = d.org AND o.event_id = d.id RETURNING o.ctid, o.event_id, o.org_id, o.event_type, o.event_version,
	o.aggregate_type, o.aggregate_id, o.correlation_id, o.causation_id, o.payload::text, o.payload_sha256, o.headers::text,
	o.occurred_at, o.operation_version, o.position`

// withLease claims one batch, publishes it, and marks it, with two commits, and gives its size.
func (c *claimer) withLease(ctx context.Context) (int, error) {
	if err := c.read(ctx, c.conn, lease, c.spec.Batch); err != nil || len(c.rows) == 0 {
		return 0, err
	}
	if err := c.publish(ctx); err != nil {
		return 0, err
	}
	if _, err := c.conn.Exec(ctx, mark, c.spec.Stream, c.places(), c.sequences); err != nil {
		return 0, fmt.Errorf("mark: %w", err)
	}
	return len(c.rows), nil
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func (c *claimer) read(ctx context.Context, from querier, statement string, limit int) error {
	c.rows = c.rows[:0]
	found, err := from.Query(ctx, statement, limit)
	if err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	defer found.Close()
	for found.Next() {
		var (
			r             row
			id            pgtype.UUID
			payload, hash []byte
			headers       string
		)
		d := &r.delivery
		if err := found.Scan(&r.place, &id, &d.OrgID, &d.EventType, &d.EventVersion, &d.AggregateType, &d.AggregateID,
			&d.CorrelationID, &d.CausationID, &payload, &hash, &headers, &d.OccurredAt, &d.OperationVersion,
			&d.Position); err != nil {
			return fmt.Errorf("read a claimed row: %w", err)
		}
		d.ID, d.Payload = uuid.UUID(id.Bytes), payload
		copy(d.PayloadSHA256[:], hash)
		if headers != "{}" {
			if err := json.Unmarshal([]byte(headers), &d.Headers); err != nil {
				return fmt.Errorf("read the headers of event %s: %w", d.ID, err)
			}
		}
		c.rows = append(c.rows, r)
	}
	if err := found.Err(); err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	return nil
}

// publish sends the batch without waiting in between, then waits for every acknowledgement.
func (c *claimer) publish(ctx context.Context) error {
	c.acks = c.acks[:0]
	for i := range c.rows {
		ack, err := c.js.PublishMsgAsync(c.message(&c.rows[i].delivery))
		if err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		c.acks = append(c.acks, ack)
	}
	timeout := time.After(30 * time.Second)
	c.sequences = c.sequences[:0]
	for _, future := range c.acks {
		select {
		case ack := <-future.Ok():
			c.sequences = append(c.sequences, int64(ack.Sequence))
		case err := <-future.Err():
			return fmt.Errorf("publish: %w", err)
		case <-timeout:
			return fmt.Errorf("no acknowledgement within 30 s")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (c *claimer) message(d *event.Delivery) *nats.Msg {
	subject := event.Subject(c.spec.Prefix, d.OrgID, d.EventType)
	if c.spec.Envelope {
		headers, body := event.Encode(d, d.ID.String())
		return &nats.Msg{Subject: subject, Header: headers, Data: body}
	}
	return &nats.Msg{Subject: subject, Header: nats.Header{event.HeaderMsgID: {d.ID.String()}}, Data: d.Payload}
}

func (c *claimer) places() []pgtype.TID {
	places := make([]pgtype.TID, len(c.rows))
	for i := range c.rows {
		places[i] = c.rows[i].place
	}
	return places
}

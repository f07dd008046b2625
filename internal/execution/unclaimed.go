package execution

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/deadletter"
	"github.com/relayops/relayops/internal/engine"
)

// Message is a message of a stream.
type Message struct {
	Stream string
	Seq    uint64
	// StoredAt is when the stream stored it, to the microsecond. It tells the message from another one that had the
	// same sequence before the stream was made anew.
	StoredAt time.Time
	// OrgID is the organisation that the message's subject names; empty when it names none.
	OrgID string
}

// DeadLetterMessage writes the dead letter of a message that has no execution: one that could not be decoded
// (about nil: it is its subject's organisation's), or one whose key is recorded with another payload. Stream, sequence
// and time of storage are its key: writing it again does nothing. What the database cannot hold of about or of the
// organisation is left out. Its errors are [ErrUnavailable] and [ErrRefused].
func (l *Ledger) DeadLetterMessage(ctx context.Context, m Message, code engine.Code, about *event.Delivery) error {
	err := l.deadLetterMessage(ctx, m, code, about)
	if errors.Is(err, ErrRefused) && about != nil {
		err = l.deadLetterMessage(ctx, m, code, nil)
	}
	if errors.Is(err, ErrRefused) && m.OrgID != "" {
		m.OrgID = ""
		err = l.deadLetterMessage(ctx, m, code, nil)
	}
	return err
}

func (l *Ledger) deadLetterMessage(ctx context.Context, m Message, code engine.Code, about *event.Delivery) error {
	const sql = `INSERT INTO relayops.dead_letters
  (dead_letter_id, org_id, pipeline_key, event_id, operation_version, event_type, code, stream, stream_seq,
   message_stored_at)
VALUES (@id, @org, @pipeline, @event_id::uuid, @version::integer, @event_type, @code, @stream, @seq::bigint,
  @stored_at::timestamptz)
ON CONFLICT (pipeline_key, stream, stream_seq, message_stored_at) WHERE message_stored_at IS NOT NULL DO NOTHING`
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make a dead letter's id: %w", err)
	}
	arguments := namedArgs{
		"id": id, "pipeline": l.config.PipelineKey, "code": string(deadletter.New(code).Code),
		"stream": m.Stream, "seq": int64(m.Seq),
		"stored_at": m.StoredAt.Truncate(time.Microsecond),
		"org":       m.OrgID, "event_id": nil, "version": nil, "event_type": "",
	}
	if about != nil {
		arguments["org"], arguments["event_id"] = about.OrgID, about.ID
		arguments["version"], arguments["event_type"] = about.OperationVersion, about.EventType
	}
	what := fmt.Sprintf("write the dead letter of message %d of stream %s", m.Seq, m.Stream)
	return l.settle(ctx, what, true, func(ctx context.Context, _ bool) error {
		_, err := l.pool.Exec(ctx, sql, arguments)
		return err
	})
}

// Key is what identifies an execution within a pipeline.
type Key struct {
	OrgID            string
	EventID          uuid.UUID
	OperationVersion int32
}

// KeyOf a delivered event.
func KeyOf(d *event.Delivery) Key { return Key{d.OrgID, d.ID, d.OperationVersion} }

// Recorded gives the payload hash of each key that the ledger has.
func (l *Ledger) Recorded(ctx context.Context, keys []Key) (map[Key][32]byte, error) {
	const sql = `SELECT e.org_id, e.event_id, e.operation_version, e.payload_sha256
FROM unnest(@orgs::text[], @ids::uuid[], @versions::integer[]) AS k (org_id, event_id, version)
JOIN relayops.pipeline_executions e ON e.org_id = k.org_id AND e.pipeline_key = @pipeline
  AND e.event_id = k.event_id AND e.operation_version = k.version`
	orgs, ids, versions := make([]string, len(keys)), make([][16]byte, len(keys)), make([]int32, len(keys))
	for i, key := range keys {
		orgs[i], ids[i], versions[i] = key.OrgID, key.EventID, key.OperationVersion
	}
	recorded := make(map[Key][32]byte, len(keys))
	err := l.settle(ctx, "compare messages with the ledger", true, func(ctx context.Context, _ bool) error {
		rows, err := l.pool.Query(ctx, sql, namedArgs{
			"orgs": orgs, "ids": ids, "versions": versions, "pipeline": l.config.PipelineKey,
		})
		if err != nil {
			return err
		}
		var key Key
		var hash []byte
		_, err = pgx.ForEachRow(rows, []any{&key.OrgID, &key.EventID, &key.OperationVersion, &hash}, func() error {
			recorded[key] = [32]byte(hash)
			return nil
		})
		return err
	})
	return recorded, err
}

const recoverSQL = `
WITH held AS (
  INSERT INTO relayops.pipeline_executions (execution_id, org_id, pipeline_key, event_id, operation_version,
    event_type, aggregate_type, aggregate_id, correlation_id, trace_parent, payload_sha256, revision,
    state, attempt, due_at, deadline_at, stream, stream_seq, occurred_at)
  VALUES (@execution_id::uuid, @org, @pipeline, @event_id::uuid, @version::integer,
    @event_type, @aggregate_type, @aggregate_id, @correlation_id, @trace_parent, @payload_sha256::bytea, @revision,
    'RETRY', 0, now(), @deadline_at::timestamptz, @stream, @stream_seq::bigint, @occurred_at::timestamptz)
  ON CONFLICT ON CONSTRAINT pipeline_executions_key DO NOTHING
  RETURNING state
)`

// Recover puts an event that was never claimed into the ledger, due now and without an attempt counted, and keeps its
// envelope unless the outbox has it. False: the ledger has it already. Its errors are [ErrNoOrg], [ErrUnavailable] and
// [ErrRefused].
func (l *Ledger) Recover(ctx context.Context, request Request) (recovered bool, err error) {
	d := request.Delivery
	if d.OrgID == "" {
		return false, ErrNoOrg
	}
	arguments, err := l.claimArguments(&request, "")
	if err != nil {
		return false, err
	}
	statement := recoverSQL
	if d.PayloadRef == "" {
		statement += l.keeps
		if err := addKept(arguments, d); err != nil {
			return false, err
		}
	}
	err = l.settle(ctx, fmt.Sprintf("recover event %s", d.ID), true, func(ctx context.Context, _ bool) error {
		state, err := oneState(ctx, l.pool, statement+stateSQL, arguments)
		recovered = state != ""
		return err
	})
	return recovered, err
}

package execution

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	outboxstore "github.com/relayops/relayops/internal/outbox"
)

// keepSQL stores the envelope of the execution that the statement holds, unless the outbox has its row. The key's
// arguments have names of their own, because a mapped table may have other types.
func keepSQL(table outbox.Table) string {
	org, _ := table.Column("org_id")
	id, _ := table.Column("event_id")
	return `, kept AS (
  INSERT INTO relayops.event_payloads (org_id, event_id, envelope, payload)
  SELECT @kept_org, @kept_id::uuid, @kept_envelope::jsonb, @kept_payload::jsonb FROM held
  WHERE NOT EXISTS (SELECT FROM ` + table.Identifier() + ` o WHERE o.` + org + ` = @outbox_org AND o.` + id +
		` = @outbox_id)
  ON CONFLICT (org_id, event_id) DO NOTHING
)`
}

// keptEnvelope is the column envelope: everything but the payload.
type keptEnvelope struct {
	event.Envelope
	// Payload hides the envelope's own.
	Payload       *struct{} `json:"payload,omitempty"`
	PayloadSHA256 string    `json:"payloadSha256"`
}

func addKept(arguments namedArgs, d *event.Delivery) error {
	envelope, err := json.Marshal(keptEnvelope{
		Envelope: d.Envelope, PayloadSHA256: hex.EncodeToString(d.PayloadSHA256[:]),
	})
	if err != nil {
		return fmt.Errorf("marshal the envelope of event %s: %w", d.ID, err)
	}
	arguments["kept_org"], arguments["kept_id"] = d.OrgID, d.ID
	arguments["kept_envelope"], arguments["kept_payload"] = string(envelope), string(d.Payload)
	arguments["outbox_org"], arguments["outbox_id"] = d.OrgID, d.ID.String()
	return nil
}

// ErrNoEvent says: neither the outbox nor the ledger has the event's envelope.
var ErrNoEvent = errors.New("event not stored")

// Event reads an event where it is stored: from the outbox, or from what the ledger kept. Its errors are [ErrNoEvent],
// [ErrUnavailable], [ErrRefused], and one that wraps event.ErrInvalid for an outbox row that is no valid event.
func (l *Ledger) Event(ctx context.Context, org string, id uuid.UUID) (*event.Delivery, error) {
	var found *event.Delivery
	err := l.settle(ctx, fmt.Sprintf("read event %s", id), true, func(ctx context.Context, _ bool) (err error) {
		if found, err = l.outbox.Get(ctx, l.pool, org, id); errors.Is(err, outboxstore.ErrNotFound) {
			found, err = l.kept(ctx, org, id)
		}
		return err
	})
	return found, err
}

func (l *Ledger) kept(ctx context.Context, org string, id uuid.UUID) (*event.Delivery, error) {
	const sql = `SELECT envelope::text, payload::text FROM relayops.event_payloads
WHERE org_id = @org AND event_id = @event_id::uuid`
	rows, err := l.pool.Query(ctx, sql, namedArgs{"org": org, "event_id": id})
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[keptRow])
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, ErrNoEvent
	}
	return found[0].delivery()
}

type keptRow struct{ Envelope, Payload string }

func (r keptRow) delivery() (*event.Delivery, error) {
	var envelope keptEnvelope
	if err := json.Unmarshal([]byte(r.Envelope), &envelope); err != nil {
		return nil, fmt.Errorf("%w: read a stored envelope: %w", ErrRefused, err)
	}
	d := &event.Delivery{Envelope: envelope.Envelope, OperationVersion: 1}
	d.Payload = json.RawMessage(r.Payload)
	hash, err := hex.DecodeString(envelope.PayloadSHA256)
	if err != nil || len(hash) != len(d.PayloadSHA256) {
		return nil, fmt.Errorf("%w: read a stored envelope: its hash has not 64 hexadecimal digits", ErrRefused)
	}
	copy(d.PayloadSHA256[:], hash)
	return d, nil
}

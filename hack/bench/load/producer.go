package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
)

// Producer commits events as an application does, each in a transaction of its own.
type Producer struct {
	// IDs of the events, by their number; an event that is not committed has none.
	IDs []uuid.UUID

	pool    *pgxpool.Pool
	payload int
	write   func(ctx context.Context, tx pgx.Tx, envelope *event.Envelope) error
	ping    func()
}

// New makes a producer that uses api/outbox, and calls ping after each commit. The payload's size is in bytes.
func New(pool *pgxpool.Pool, events, payload int, ping func()) *Producer {
	return &Producer{
		IDs: make([]uuid.UUID, events), pool: pool, payload: payload, ping: ping,
		write: func(ctx context.Context, tx pgx.Tx, envelope *event.Envelope) error {
			return outbox.Write(ctx, tx, *envelope)
		},
	}
}

// PlainInsert makes a producer that knows nothing but the table, and wakes nobody up.
func PlainInsert(pool *pgxpool.Pool, events, payload int) *Producer {
	return &Producer{
		IDs: make([]uuid.UUID, events), pool: pool, payload: payload, ping: func() {},
		write: func(ctx context.Context, tx pgx.Tx, envelope *event.Envelope) error {
			_, err := tx.Exec(ctx, `INSERT INTO relayops.outbox_events (event_id, org_id, event_type, payload)
				VALUES ($1, $2, $3, $4)`, envelope.ID, envelope.OrgID, envelope.EventType, envelope.Payload)
			return err
		},
	}
}

// Commit commits the n-th event, and gives the time when the commit had returned; it is what an [OpenLoop] calls. Each
// number is used once.
func (p *Producer) Commit(ctx context.Context, n int) (time.Time, error) {
	random := rand.New(rand.NewPCG(uint64(n), 2))
	envelope, err := event.New(Org(n), EventType, Payload(n, p.payload, random))
	if err != nil {
		return time.Time{}, err
	}
	tx, err := p.pool.Begin(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // After a commit it does nothing.
	if err := p.write(ctx, tx, &envelope); err != nil {
		return time.Time{}, fmt.Errorf("write: %w", err)
	}
	if err := tx.Commit(ctx); err != nil {
		return time.Time{}, fmt.Errorf("commit: %w", err)
	}
	done := time.Now()
	p.ping()
	p.IDs[n] = envelope.ID
	return done, nil
}

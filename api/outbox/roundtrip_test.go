package outbox_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/testenv"
)

// counter counts the statements that a connection sends.
type counter struct{ statements atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.statements.Add(1)
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestStatementsOfAWrite(t *testing.T) {
	databaseURL := testenv.Database(t)
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	sent := &counter{}
	config.Tracer = sent
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	many := make([]event.Envelope, 10_000)
	for i := range many {
		many[i] = confirmed(t, "acme", fmt.Sprint(i))
	}
	one := confirmed(t, "acme", `1`)
	for _, c := range []struct {
		name   string
		events []event.Envelope
		want   int64
	}{
		{"none", nil, 0},
		{"one", []event.Envelope{one}, 1},
		{"10,000", many, 1},
		{"one again", []event.Envelope{one}, 2}, // The INSERT, and what is there.
	} {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sent.statements.Store(0)
		if err := outbox.Write(t.Context(), tx, c.events...); err != nil {
			t.Fatal(err)
		}
		if n := sent.statements.Load(); n != c.want {
			t.Errorf("%s: %d statements, want %d", c.name, n, c.want)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// The ways to write a batch, for a comparison in one run: go test -bench Write ./api/outbox
func BenchmarkWrite(b *testing.B) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, testenv.Database(b))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	payload := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 1000))
	const plain = `INSERT INTO relayops.outbox_events (event_id, org_id, event_type, event_version, payload, occurred_at)
		VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`
	for _, size := range []int{1, 50, 1000} {
		for name, write := range map[string]func(tx pgx.Tx, events []event.Envelope) error{
			"writer": func(tx pgx.Tx, events []event.Envelope) error { return outbox.Write(ctx, tx, events...) },
			"pgx.Batch": func(tx pgx.Tx, events []event.Envelope) error {
				batch := &pgx.Batch{}
				for _, e := range events {
					batch.Queue(plain, e.ID, e.OrgID, e.EventType, e.EventVersion, e.Payload, e.OccurredAt)
				}
				return tx.SendBatch(ctx, batch).Close()
			},
		} {
			b.Run(fmt.Sprintf("%d/%s", size, name), func(b *testing.B) {
				for b.Loop() {
					events := make([]event.Envelope, size)
					for i := range events {
						events[i] = confirmed(b, "acme", payload)
					}
					if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return write(tx, events) }); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*size), "µs/event")
			})
		}
	}
}

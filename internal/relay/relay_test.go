package relay

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/relayops/relayops/internal/runspec"
)

func TestPublishesCommittedEvents(t *testing.T) {
	w := newWorld(t)
	w.exec(`INSERT INTO relayops.outbox_events (org_id, event_type, event_version, aggregate_type, aggregate_id,
		correlation_id, causation_id, payload, headers) VALUES ('acme', 'order.paid', 3, 'Order', '4711', 'corr', 'cause',
		'{"total": 12.50}', '{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "shop": "münchen"}')`)
	w.run()
	w.waitPublished(1)
	messages := w.messages()
	if len(messages) != 1 {
		t.Fatalf("%d messages, want 1", len(messages))
	}
	m := messages[0]
	if m.Subject != "events.acme.order%2Epaid" || m.MsgID != m.ID.String() {
		t.Errorf("subject %q, message id %q", m.Subject, m.MsgID)
	}
	if m.EventVersion != 3 || m.AggregateType != "Order" || m.AggregateID != "4711" || m.CorrelationID != "corr" ||
		m.CausationID != "cause" || m.Headers["traceparent"][0] != "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" ||
		m.Delivery.Headers["shop"] != "münchen" || m.Position != 1 || m.OperationVersion != 1 {
		t.Errorf("envelope: %+v", m.Delivery)
	}
	sameJSON(t, m.Payload, `{"total": 12.50}`)
	if r := w.row("acme", m.ID); r.Status != "PUBLISHED" || r.Stream != "EVENTS" || r.Sequence != 1 || r.Attempts != 0 {
		t.Errorf("row: %+v", r)
	}
	w.onceEach()
}

// Guarantee 2.
func TestRolledBackEventIsNeverPublished(t *testing.T) {
	w := newWorld(t)
	r := w.run()
	r.waitReady()
	tx, err := w.db.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	_, err = tx.Exec(context.Background(), `INSERT INTO relayops.outbox_events (org_id, event_type, payload)
		VALUES ('acme', 'Phantom', '1')`)
	if err != nil {
		t.Fatal(err)
	}
	w.insert("acme", "Real", "1")
	w.waitPublished(1)
	if err := tx.Rollback(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.insert("acme", "Real", "2")
	w.waitPublished(2)
	for _, m := range w.messages() {
		if m.EventType != "Real" {
			t.Errorf("phantom published: %s", m.Subject)
		}
	}
}

func TestRelaysContend(t *testing.T) {
	for _, relays := range []int{2, 4} {
		t.Run("", func(t *testing.T) {
			w := newWorld(t)
			w.insertMany(2000)
			var all []*running
			for range relays {
				all = append(all, w.run(func(spec *runspec.Relay) { spec.BatchSize = 7 }))
			}
			w.waitPublished(2000)
			for _, r := range all {
				r.Stop()
				for name, collector := range map[string]prometheus.Collector{
					"claims_lost_total": r.metrics.claimsLost, "duplicates_total": r.metrics.duplicates.WithLabelValues("verified"),
				} {
					if got := testutil.ToFloat64(collector); got != 0 {
						t.Errorf("%s is %v: relays took each other's rows", name, got)
					}
				}
			}
			w.onceEach()
			w.noAttempts()
		})
	}
}

func TestOldestFirst(t *testing.T) {
	w := newWorld(t)
	w.insertMany(200)
	w.exec("UPDATE relayops.outbox_events SET available_at = now() - (201 - position) * interval '1 second'")
	w.run(func(spec *runspec.Relay) { spec.Claimers = 1 })
	w.waitPublished(200)
	last := int64(0)
	for _, m := range w.messages() {
		if m.Position <= last {
			t.Fatalf("position %d after %d", m.Position, last)
		}
		last = m.Position
	}
}

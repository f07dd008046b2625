package limit_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/hack/bench/limit"
	"github.com/relayops/relayops/hack/bench/load"
	"github.com/relayops/relayops/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// A limit that does less than the relay's job would be no limit: each loop publishes every event, once, and records the
// place of its message in its row.
func TestLoopsDoTheWholeJob(t *testing.T) {
	const events = 120
	for _, spec := range []limit.Spec{
		{Layout: limit.Transaction, Claimers: 2, Batch: 50, Envelope: true},
		{Layout: limit.Transaction, Claimers: 1, Batch: 7},
		{Layout: limit.Lease, Claimers: 2, Batch: 50, Envelope: true},
		{Layout: limit.Transaction, Claimers: 1, Batch: 50, Envelope: true, Listen: true, PollInterval: 50 * time.Millisecond},
	} {
		t.Run(spec.Layout, func(t *testing.T) {
			spec.DatabaseURL = testenv.Database(t)
			broker := testenv.NATS(t)
			spec.NATSURL, spec.Stream, spec.Prefix = broker.URL(), "BENCH", "events"
			js, err := jetstream.New(broker.Connect())
			if err != nil {
				t.Fatal(err)
			}
			stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "BENCH", Subjects: []string{"events.>"}})
			if err != nil {
				t.Fatal(err)
			}
			pool := testenv.Pool(t, spec.DatabaseURL)
			if _, err := load.Backlog(t.Context(), pool, events, 300); err != nil {
				t.Fatal(err)
			}

			ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- limit.Run(ctx, spec) }()
			marked := 0
			for ctx.Err() == nil && marked < events {
				time.Sleep(10 * time.Millisecond)
				err := pool.QueryRow(t.Context(), `SELECT count(DISTINCT stream_seq) FROM relayops.outbox_events
					WHERE status = 'PUBLISHED' AND stream = 'BENCH' AND published_at IS NOT NULL`).Scan(&marked)
				if err != nil {
					t.Fatal(err)
				}
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			info, err := stream.Info(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if marked != events || info.State.Msgs != events {
				t.Errorf("found %d rows marked and %d messages, want %d", marked, info.State.Msgs, events)
			}
			if message, err := stream.GetMsg(t.Context(), 1); err != nil {
				t.Error(err)
			} else if _, err := event.Decode(message.Header, message.Data); spec.Envelope && err != nil {
				t.Errorf("a message with an envelope: %v", err)
			}
		})
	}
}

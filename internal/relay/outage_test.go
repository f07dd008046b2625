package relay

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/testenv"
)

// load commits events at a steady pace until it is stopped, and gives how many were committed.
func load(t *testing.T, pool *pgxpool.Pool) (stop func() int) {
	ctx, cancel := context.WithCancel(context.Background())
	committed := 0
	var work sync.WaitGroup
	work.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			// An error leaves it open whether the row is there: the test asks the database. What is under way at the end
			// is waited for: a statement that is cancelled may commit afterwards.
			inserting, done := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			_, err := pool.Exec(inserting, `INSERT INTO relayops.outbox_events (event_id, org_id, event_type, payload)
				VALUES ($1, 'acme', 'OrderConfirmed', '{}')`, uuid.New())
			done()
			if err == nil {
				committed++
			}
		}
	})
	t.Cleanup(func() { cancel(); work.Wait() })
	return func() int { cancel(); work.Wait(); return committed }
}

// Guarantee 11: the broker goes away under load and comes back.
func TestBrokerOutageBurnsNoAttempts(t *testing.T) {
	for _, end := range []string{"stop", "kill"} {
		t.Run(end, func(t *testing.T) {
			w := newWorld(t)
			r := w.run()
			r.waitReady()
			stop := load(t, w.db)
			eventually(t, "events flow", func() bool { return w.count("status = 'PUBLISHED'") > 20 })
			if end == "stop" {
				w.broker.Stop()
			} else {
				w.broker.Kill()
			}
			r.waitReason(ReasonBrokerUnreachable)
			if ready, reason := r.Ready(); ready || !strings.HasPrefix(reason, "BrokerUnreachable") {
				t.Errorf("ready = %t, %q", ready, reason)
			}
			if got := testutil.ToFloat64(r.metrics.paused.WithLabelValues(string(ReasonBrokerUnreachable))); got != 1 {
				t.Errorf("metric paused: %v", got)
			}
			time.Sleep(300 * time.Millisecond)
			w.broker.Start()
			r.waitReady()
			committed := stop()
			w.waitPublished(w.count("true"))
			if n := w.count("true"); n < committed {
				t.Errorf("%d rows, %d committed", n, committed)
			}
			w.noAttempts()
			w.onceEach()
		})
	}
}

// Guarantee 11, and an answer that never comes: the broker freezes with publishes in flight.
func TestFrozenBrokerBurnsNoAttempts(t *testing.T) {
	w := newWorld(t)
	r := w.run(func(spec *runspec.Relay) { spec.PublishTimeout = runspec.Duration(300 * time.Millisecond) })
	r.waitReady()
	w.broker.Pause()
	w.insertMany(100)
	r.waitReason(ReasonPublishTimeout)
	w.broker.Resume()
	w.waitPublished(100)
	w.noAttempts()
	w.onceEach()
}

// Guarantee 11: the database goes away under load and comes back.
func TestDatabaseOutageBurnsNoAttempts(t *testing.T) {
	server := testenv.Postgres(t)
	w := worldOn(t, server.URL(), testenv.NATS(t))
	r := w.run()
	r.waitReady()
	stop := load(t, w.db)
	eventually(t, "events flow", func() bool { return w.count("status = 'PUBLISHED'") > 20 })
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.waitReason(ReasonDatabaseUnreachable)
	time.Sleep(200 * time.Millisecond)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.waitReady()
	time.Sleep(200 * time.Millisecond)
	stop()
	w.db.Reset()
	w.waitPublished(w.count("true"))
	w.noAttempts()
	w.onceEach()
}

func TestStartsWhileBothServersAreAway(t *testing.T) {
	server := testenv.Postgres(t)
	w := worldOn(t, server.URL(), testenv.NATS(t))
	w.insertMany(5)
	w.broker.Stop()
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := w.run()
	r.waitReason(ReasonDatabaseUnreachable)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.waitReason(ReasonBrokerUnreachable)
	w.broker.Start()
	w.db.Reset()
	w.waitPublished(5)
	w.noAttempts()
}

func TestMissingStreamIsReportedAndMadeAnew(t *testing.T) {
	w := newWorld(t)
	r := w.run()
	w.insertMany(3)
	w.waitPublished(3)
	js, err := jetstream.New(w.broker.Connect())
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), "EVENTS"); err != nil {
		t.Fatal(err)
	}
	w.insertMany(4)
	w.waitPublished(7)
	if got := testutil.ToFloat64(r.metrics.streamRecreated); got != 1 {
		t.Errorf("metric stream_recreated_total: %v, want 1", got)
	}
	if got := r.Status().StreamRecreated; got != 1 {
		t.Errorf("status: streamRecreated %d, want 1", got)
	}
	w.noAttempts()
	if n := len(w.messages()); n != 4 {
		t.Errorf("%d messages in the new stream, want 4", n)
	}
}

// Guarantee 11: a full stream.
func TestFullStreamPausesAndResumes(t *testing.T) {
	w := newWorld(t)
	w.spec.Stream.MaxBytes = 20 << 10
	r := w.run()
	w.exec(`INSERT INTO relayops.outbox_events (org_id, event_type, payload)
		SELECT 'acme', 'Big', to_jsonb(repeat('x', 1000)) FROM generate_series(1, 40)`)
	r.waitReason(ReasonStreamFull)
	before := w.count("status = 'PUBLISHED'")
	if before == 0 || before == 40 {
		t.Fatalf("%d published, want some and not all", before)
	}
	w.noAttempts()
	js, err := jetstream.New(w.broker.Connect())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "EVENTS")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "all are published as there is room", func() bool {
		if r.Status().Reason == ReasonStreamFull {
			if err := stream.Purge(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return w.count("status = 'PUBLISHED'") == 40
	})
	w.noAttempts()
	r.waitReady()
}

const accounts = `authorization { users: [
	{user: relay, password: secret, permissions: { publish: [%s], subscribe: ["_INBOX.>"] } },
	{user: admin, password: secret }
] }`

// Guarantee 11: credentials that are refused, and a permission that is missing.
func TestUnauthorizedBurnsNoAttempts(t *testing.T) {
	t.Run("connect", func(t *testing.T) {
		w := newWorld(t)
		open := w.broker.Config()
		w.broker.Stop()
		w.broker.Configure(open + strings.Replace(accounts, "%s", `">"`, 1))
		w.broker.Start()
		w.insertMany(3)
		r := w.run()
		r.waitReason(ReasonUnauthorized)
		w.noAttempts()
		w.broker.Stop()
		w.broker.Configure(open)
		w.broker.Start()
		w.waitPublished(3)
		w.noAttempts()
	})
	t.Run("publish", func(t *testing.T) {
		w := newWorld(t)
		open := w.broker.Config()
		w.broker.Stop()
		w.broker.Configure(open + strings.Replace(accounts, "%s", `"$JS.API.>"`, 1))
		w.broker.Start()
		w.insertMany(3)
		r := w.run(func(spec *runspec.Relay) {
			spec.NATS.URL = strings.Replace(spec.NATS.URL, "nats://", "nats://relay:secret@", 1)
			spec.PublishTimeout = runspec.Duration(300 * time.Millisecond)
		})
		r.waitReason(ReasonUnauthorized)
		w.noAttempts()
		w.broker.Stop()
		w.broker.Configure(open)
		w.broker.Start()
		w.waitPublished(3)
		w.noAttempts()
	})
}

func TestForeignStreamIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	js, err := jetstream.New(w.broker.Connect())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"events.acme.>"}}); err != nil {
		t.Fatal(err)
	}
	w.insertMany(3)
	r := w.run()
	r.waitReason(ReasonStreamConflict)
	if message := r.Status().Message; !strings.Contains(message, `"OTHER"`) || !strings.Contains(message, "events.*.*") {
		t.Errorf("message: %s", message)
	}
	w.noAttempts()
	if err := js.DeleteStream(t.Context(), "OTHER"); err != nil {
		t.Fatal(err)
	}
	w.waitPublished(3)
}

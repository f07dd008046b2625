package relay

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/relayops/relayops/internal/runspec"
)

// A ping after the commit wakes the relay long before its next poll.
func TestWakeUpBeatsThePoll(t *testing.T) {
	w := newWorld(t)
	r := w.run(func(spec *runspec.Relay) { spec.PollInterval = runspec.Duration(time.Minute) })
	r.waitReady()
	eventually(t, "the relay listens", func() bool { return r.Status().Listening })
	sub, err := w.broker.Connect().SubscribeSync("events.>")
	if err != nil {
		t.Fatal(err)
	}
	var latencies []time.Duration
	for range 40 {
		id := w.insert("acme", "OrderConfirmed", "{}")
		committed := time.Now()
		w.exec("NOTIFY relayops_outbox")
		msg, err := sub.NextMsg(10 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		latencies = append(latencies, time.Since(committed))
		if got := msg.Header.Get("RelayOps-Event-Id"); got != id.String() {
			t.Fatalf("event %s, want %s", got, id)
		}
		time.Sleep(5 * time.Millisecond)
	}
	slices.Sort(latencies)
	t.Logf("commit to publish: p50 %s, p99 %s", latencies[20], latencies[39])
	if latencies[20] > 200*time.Millisecond {
		t.Errorf("p50 of commit to publish is %s", latencies[20])
	}
}

// The poll is the guarantee: without LISTEN, as behind PgBouncer in transaction mode, events are published all the same.
func TestPollsWithoutListen(t *testing.T) {
	w := newWorld(t)
	r := w.run(func(spec *runspec.Relay) { spec.Database.DisableListen = true })
	r.waitReady()
	for n := range 3 {
		w.insertMany(2)
		w.waitPublished(2 * (n + 1))
	}
	if r.Status().Listening {
		t.Error("it listens")
	}
}

// The wake-up connection is lost and comes back.
func TestListensAgain(t *testing.T) {
	w := newWorld(t)
	r := w.run(func(spec *runspec.Relay) { spec.PollInterval = runspec.Duration(time.Minute) })
	r.waitReady()
	eventually(t, "the relay listens", func() bool { return r.Status().Listening })
	w.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'relayops-relay-listen'`)
	eventually(t, "the connection is lost", func() bool { return !r.Status().Listening })
	id := w.insert("acme", "OrderConfirmed", "{}") // Nobody hears its ping.
	eventually(t, "the relay listens again, and looks at what it missed", func() bool {
		return w.row("acme", id).Status == "PUBLISHED"
	})
	eventually(t, "the relay listens", func() bool { return r.Status().Listening })
	id = w.insert("acme", "OrderConfirmed", "{}")
	w.exec("NOTIFY relayops_outbox")
	eventually(t, "a ping is heard", func() bool { return w.row("acme", id).Status == "PUBLISHED" })
}

// queryCounter counts what a pool sends.
type queryCounter struct{ queries, batches atomic.Int64 }

func (c *queryCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.queries.Add(1)
	return ctx
}
func (c *queryCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (c *queryCounter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.batches.Add(1)
	return ctx
}
func (c *queryCounter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (c *queryCounter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// An idle relay asks once in a poll interval, and claims nothing.
func TestIdleCost(t *testing.T) {
	w := newWorld(t)
	counter := &queryCounter{}
	poll := 100 * time.Millisecond
	r := w.runWith([]func(*pgxpool.Config){func(c *pgxpool.Config) { c.ConnConfig.Tracer = counter }},
		func(spec *runspec.Relay) { spec.PollInterval = runspec.Duration(poll) })
	r.waitReady()
	time.Sleep(5 * poll)
	queries, batches := counter.queries.Load(), counter.batches.Load()
	const intervals = 20
	time.Sleep(intervals * poll)
	if got := counter.queries.Load() - queries; got > intervals+1 || got < intervals/2 {
		t.Errorf("%d queries in %d poll intervals, want one in each", got, intervals)
	}
	if got := counter.batches.Load() - batches; got != 0 {
		t.Errorf("%d claims while nothing was due", got)
	}
}

// SIGTERM in the middle of a batch: what is in hand is published and marked, nothing more is claimed.
func TestDrainFinishesTheBatchInHand(t *testing.T) {
	w := newWorld(t)
	w.insertMany(200)
	r := w.run(func(spec *runspec.Relay) { spec.Claimers, spec.BatchSize = 1, 5 })
	eventually(t, "batches are published", func() bool { return w.count("status = 'PUBLISHED'") > 10 })
	w.broker.Pause() // The batch in hand cannot end yet.
	stopped := make(chan struct{})
	go func() { r.Stop(); close(stopped) }()
	time.Sleep(100 * time.Millisecond)
	w.broker.Resume()
	<-stopped
	published := w.count("status = 'PUBLISHED'")
	if published == 200 {
		t.Fatal("everything was published: the relay was not stopped in between")
	}
	if n := len(w.messages()); n != published {
		t.Errorf("%d messages, %d marked", n, published)
	}
	if n := w.count("status = 'PENDING' AND attempts = 0"); n != 200-published {
		t.Errorf("%d rows given back, want %d", n, 200-published)
	}
	w.run()
	w.waitPublished(200)
	w.onceEach()
}

// The database ends a claim whose relay froze; another relay takes over, and the frozen one's marks change nothing.
func TestStalledClaimIsTakenOver(t *testing.T) {
	w := newWorld(t)
	w.spec.ClaimLease = runspec.Duration(500 * time.Millisecond)
	w.spec.PublishTimeout = runspec.Duration(200 * time.Millisecond)
	w.spec.PollInterval = runspec.Duration(50 * time.Millisecond)
	w.insertMany(5)
	var freeze sync.Once
	frozen, thaw := make(chan struct{}), make(chan struct{})
	stalled := w.runStalling(func() {
		freeze.Do(func() { close(frozen); <-thaw })
	})
	<-frozen
	other := w.run(func(spec *runspec.Relay) { spec.Claimers = 1 })
	w.waitPublished(5)
	marked := w.marks()
	close(thaw)
	eventually(t, "the stalled relay finds its claim lost", func() bool {
		return testutil.ToFloat64(stalled.metrics.claimsLost) >= 1
	})
	stalled.waitReady()
	if got := w.marks(); !slices.Equal(got, marked) {
		t.Errorf("the stalled relay changed the marks: %v, want %v", got, marked)
	}
	other.Stop()
	w.onceEach()
	w.noAttempts()
}

// A suspended relay is ready, counts, and publishes nothing.
func TestSuspended(t *testing.T) {
	w := newWorld(t)
	w.insertMany(3)
	r := w.run(func(spec *runspec.Relay) { spec.Suspended = true })
	r.waitReady()
	eventually(t, "the backlog is counted", func() bool { return r.Status().Pending == 3 })
	time.Sleep(500 * time.Millisecond)
	if n := w.count("status <> 'PENDING'"); n != 0 {
		t.Errorf("%d rows claimed", n)
	}
	if s := r.Status(); s.State != StateSuspended {
		t.Errorf("state %s", s.State)
	}
}

// A panic in a batch gives its rows back, and the relay goes on.
func TestPanicLosesNothing(t *testing.T) {
	w := newWorld(t)
	w.insertMany(10)
	var panics atomic.Int64
	r := w.runStalling(func() {
		if panics.Add(1) == 1 {
			panic("on purpose")
		}
	})
	w.waitPublished(10)
	r.waitReady()
	w.onceEach()
	w.noAttempts()
}

func TestLeavesNoGoroutine(t *testing.T) {
	w := newWorld(t)
	w.db.Close()
	w.db = nil
	before := goleak.IgnoreCurrent()
	r := w.run()
	r.waitReady()
	eventually(t, "the relay listens", func() bool { return r.Status().Listening })
	r.Stop()
	goleak.VerifyNone(t, before)
}

// stalling calls hook before each publish, when the batch is claimed.
type stalling struct {
	jetstream.JetStream
	hook func()
}

func (s stalling) PublishMsgAsync(m *nats.Msg, options ...jetstream.PublishOpt) (jetstream.PubAckFuture, error) {
	s.hook()
	return s.JetStream.PublishMsgAsync(m, options...)
}

// runStalling runs a relay of one claimer with a hook.
func (w *world) runStalling(hook func()) *running {
	w.t.Helper()
	r := w.prepare(nil, func(spec *runspec.Relay) { spec.Claimers = 1 })
	r.publisher.js = stalling{r.publisher.js, hook}
	return r.start()
}

// marks are what the outbox says of publications.
func (w *world) marks() []string {
	w.t.Helper()
	rows, err := w.db.Query(context.Background(),
		"SELECT concat_ws(' ', event_id, status, stream_seq, published_at) FROM relayops.outbox_events ORDER BY position")
	if err != nil {
		w.t.Fatal(err)
	}
	marks, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.t.Fatal(err)
	}
	return marks
}

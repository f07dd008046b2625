package relay

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/connect"
	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/testenv"
)

// world is a database and a broker of one test, and the relays that run on them.
type world struct {
	t      *testing.T
	url    string
	db     *pgxpool.Pool
	broker *testenv.Broker
	spec   runspec.Relay
}

func newWorld(t *testing.T, brokerConfig ...string) *world {
	t.Helper()
	return worldOn(t, testenv.Database(t), testenv.NATS(t, brokerConfig...))
}

func worldOn(t *testing.T, databaseURL string, broker *testenv.Broker) *world {
	t.Helper()
	spec := worldSpec()
	spec.Database.URL, spec.NATS.URL = databaseURL, broker.URL()
	return &world{t: t, url: databaseURL, db: testenv.Pool(t, databaseURL), broker: broker, spec: spec}
}

// worldSpec is the specification of the tests' relays, without addresses.
func worldSpec() runspec.Relay {
	second := runspec.Duration(time.Second)
	return runspec.Relay{
		Key:      "test/shop/main",
		Database: runspec.Database{MaxConnections: 8},
		Stream: runspec.Stream{
			Name: "EVENTS", SubjectPrefix: "events", Replicas: 1, MaxBytes: 256 << 20, MaxAge: 3600 * second,
			DuplicateWindow: 120 * second, MaxMessageBytes: 1 << 20, InstanceKey: "test",
		},
		PollInterval: second / 5, BatchSize: 20, Claimers: 2, ClaimLease: 5 * second, PublishTimeout: 2 * second,
		MaxAttempts: 3, BackOff: runspec.BackOff{Initial: second / 10, Max: second, Multiplier: 2, Jitter: 0.2},
		MaxInlinePayloadBytes: 256 << 10,
	}
}

func splitLines(err error) []string { return strings.Split(err.Error(), "\n") }

// running is a relay that runs.
type running struct {
	*Relay
	t        *testing.T
	Registry *prometheus.Registry
	stop     context.CancelFunc
	done     chan error
	once     sync.Once
	pool     *pgxpool.Pool
	nc       *nats.Conn
}

// run starts a relay with the world's specification as changed. It is stopped at the test's end, or by Stop.
func (w *world) run(change ...func(*runspec.Relay)) *running {
	w.t.Helper()
	return w.runWith(nil, change...)
}

func (w *world) runWith(pools []func(*pgxpool.Config), change ...func(*runspec.Relay)) *running {
	w.t.Helper()
	return w.prepare(pools, change...).start()
}

// prepare makes a relay that start starts.
func (w *world) prepare(pools []func(*pgxpool.Config), change ...func(*runspec.Relay)) *running {
	w.t.Helper()
	spec := w.spec
	for _, apply := range change {
		apply(&spec)
	}
	pools = append([]func(*pgxpool.Config){func(c *pgxpool.Config) {
		c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	}}, pools...)
	log := slog.New(slog.NewTextHandler(testWriter{w.t}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	if os.Getenv("RELAYOPS_TEST_LOG") == "" {
		log = slog.New(slog.DiscardHandler)
	}
	pool, err := connect.Database(w.t.Context(), spec.Database, "relay", pools...)
	if err != nil {
		w.t.Fatal(err)
	}
	nc, err := connect.NATS(spec.NATS, "relay", log)
	if err != nil {
		w.t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	r, err := New(Config{Spec: spec, Pool: pool, NATS: nc, Log: log, Registry: registry})
	if err != nil {
		w.t.Fatal(err)
	}
	return &running{Relay: r, t: w.t, Registry: registry, done: make(chan error, 1), pool: pool, nc: nc}
}

func (r *running) start() *running {
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() {
		err := r.Run(ctx)
		r.nc.Close()
		r.pool.Close()
		r.done <- err
	}()
	r.t.Cleanup(r.Stop)
	return r
}

// Stop ends the relay and waits for it.
func (r *running) Stop() {
	r.once.Do(func() {
		r.stop()
		select {
		case err := <-r.done:
			if err != nil {
				r.t.Errorf("relay ended: %v", err)
			}
		case <-time.After(20 * time.Second):
			r.t.Errorf("relay does not stop: %+v", r.Status())
		}
	})
}

func (r *running) waitReason(reason Reason) {
	r.t.Helper()
	eventually(r.t, "the relay pauses with reason "+string(reason), func() bool { return r.Status().Reason == reason })
}

func (r *running) waitReady() {
	r.t.Helper()
	eventually(r.t, "the relay is ready", func() bool { ready, _ := r.Ready(); return ready })
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(line []byte) (int, error) {
	_, err := os.Stderr.Write(append([]byte(w.t.Name()+": "), line...))
	return len(line), err
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// insert commits one event by a plain INSERT, as any language would.
func (w *world) insert(org, eventType, payload string) uuid.UUID {
	w.t.Helper()
	id := uuid.New()
	w.insertAs(id, org, eventType, payload)
	return id
}

func (w *world) insertAs(id uuid.UUID, org, eventType, payload string) {
	w.t.Helper()
	w.exec(`INSERT INTO relayops.outbox_events (event_id, org_id, event_type, payload) VALUES ($1, $2, $3, $4)`,
		id, org, eventType, payload)
}

// insertMany commits n events in one transaction.
func (w *world) insertMany(n int) {
	w.t.Helper()
	w.exec(`INSERT INTO relayops.outbox_events (org_id, event_type, payload)
		SELECT 'acme', 'OrderConfirmed', jsonb_build_object('n', n) FROM generate_series(1, $1::int) AS n`, n)
}

func (w *world) exec(sql string, arguments ...any) {
	w.t.Helper()
	if _, err := w.db.Exec(context.Background(), sql, arguments...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) count(where string, arguments ...any) int {
	w.t.Helper()
	var n int
	err := w.db.QueryRow(context.Background(), "SELECT count(*) FROM relayops.outbox_events WHERE "+where, arguments...).Scan(&n)
	if err != nil {
		w.t.Fatalf("count: %v", err)
	}
	return n
}

func (w *world) waitPublished(n int) {
	w.t.Helper()
	eventually(w.t, "rows are published", func() bool { return w.count("status = 'PUBLISHED'") >= n })
	if got := w.count("status = 'PUBLISHED'"); got != n {
		w.t.Fatalf("published %d rows, want %d", got, n)
	}
}

// row is what the outbox says of one event.
type row struct {
	Status, Error, Stream string
	Attempts              int
	Sequence              int64
	AvailableIn           time.Duration
}

func (w *world) row(org string, id uuid.UUID) row {
	w.t.Helper()
	var r row
	err := w.db.QueryRow(context.Background(), `SELECT status, last_error, coalesce(stream, ''), attempts,
		coalesce(stream_seq, 0), available_at - clock_timestamp() FROM relayops.outbox_events
		WHERE org_id = $1 AND event_id = $2`, org, id).
		Scan(&r.Status, &r.Error, &r.Stream, &r.Attempts, &r.Sequence, &r.AvailableIn)
	if err != nil {
		w.t.Fatalf("read row: %v", err)
	}
	return r
}

// noAttempts fails the test if any row lost an attempt.
func (w *world) noAttempts() {
	w.t.Helper()
	if n := w.count("attempts <> 0"); n != 0 {
		w.t.Fatalf("%d rows lost attempts to an outage", n)
	}
}

// message is one message of the stream.
type message struct {
	*event.Delivery
	Subject, MsgID string
	Headers        map[string][]string
	Body           []byte
	Sequence       uint64
}

// messages reads the whole stream.
func (w *world) messages() []message {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	js, err := jetstream.New(w.broker.Connect())
	if err != nil {
		w.t.Fatal(err)
	}
	stream, err := js.Stream(ctx, w.spec.Stream.Name)
	if err != nil {
		w.t.Fatalf("stream: %v", err)
	}
	state := stream.CachedInfo().State
	var all []message
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		raw, err := stream.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			w.t.Fatalf("message %d: %v", seq, err)
		}
		m := message{
			Subject: raw.Subject, MsgID: raw.Header.Get(event.HeaderMsgID), Headers: raw.Header, Body: raw.Data, Sequence: seq,
		}
		if m.Delivery, err = event.Decode(raw.Header, raw.Data); err != nil {
			w.t.Fatalf("message %d: %v", seq, err)
		}
		all = append(all, m)
	}
	return all
}

// onceEach fails the test unless every event of the outbox is in the stream exactly once, where its row says.
func (w *world) onceEach() {
	w.t.Helper()
	type key struct{ org, id string }
	found := make(map[key][]uint64)
	for _, m := range w.messages() {
		k := key{m.OrgID, m.ID.String()}
		found[k] = append(found[k], m.Sequence)
	}
	rows, err := w.db.Query(context.Background(),
		"SELECT org_id, event_id::text, coalesce(stream_seq, 0) FROM relayops.outbox_events")
	if err != nil {
		w.t.Fatal(err)
	}
	recorded, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		Org, ID  string
		Sequence uint64
	}])
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range recorded {
		at := found[key{r.Org, r.ID}]
		if len(at) != 1 || at[0] != r.Sequence {
			w.t.Errorf("event %s of %s: in the stream at %v, recorded at %d", r.ID, r.Org, at, r.Sequence)
		}
	}
	if len(found) != len(recorded) {
		w.t.Errorf("%d events in the stream, %d in the outbox", len(found), len(recorded))
	}
}

func sameJSON(t *testing.T, got []byte, want string) {
	t.Helper()
	var a, b any
	if err := errors.Join(json.Unmarshal(got, &a), json.Unmarshal([]byte(want), &b)); err != nil {
		t.Fatalf("JSON: %v", err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("payload: got %s, want %s", got, want)
	}
}

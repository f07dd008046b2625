package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/node"
	"github.com/relayops/relayops/internal/node/httprequest"
	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/stream"
	"github.com/relayops/relayops/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	testStream = "RELAYOPS"
	waitLimit  = time.Minute
)

// world is a database, a broker with the stream, and what a relay would do.
type world struct {
	t        *testing.T
	url      string
	db       *pgxpool.Pool
	broker   *testenv.Broker
	js       jetstream.JetStream
	spec     runspec.Worker
	registry *prometheus.Registry
	logs     *syncBuffer
}

// syncBuffer is a log that a test reads while it is written.
type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func newWorld(t *testing.T, definition string, change ...func(*runspec.Worker)) *world {
	t.Helper()
	return newWorldOn(t, testenv.Database(t), testenv.NATS(t), definition, change...)
}

func newWorldOn(t *testing.T, databaseURL string, broker *testenv.Broker, definition string,
	change ...func(*runspec.Worker),
) *world {
	t.Helper()
	w := &world{
		t: t, url: databaseURL, db: testenv.Pool(t, databaseURL), broker: broker, registry: prometheus.NewRegistry(),
		logs: &syncBuffer{},
	}
	js, err := jetstream.New(broker.Connect())
	if err != nil {
		t.Fatal(err)
	}
	w.js = js
	w.spec = runspec.Worker{
		PipelineKey: "shop/default/order-post",
		Stream: runspec.Stream{
			Name: testStream, SubjectPrefix: "events", Replicas: 1, DuplicateWindow: runspec.Duration(time.Minute),
			InstanceKey: "shop",
		},
		Consumer: "order-post",
		Subscription: runspec.Subscription{
			Trigger: "order.post", EventTypes: []string{"OrderConfirmed"}, StartFrom: "Beginning",
		},
		Revision: "r1", Concurrency: 4, Replicas: 1, MaxAttempts: 3, MaxDeliver: 20,
		BackOff: runspec.BackOff{
			Initial: runspec.Duration(20 * time.Millisecond), Max: runspec.Duration(time.Second), Multiplier: 2, Jitter: 0.1,
		},
		LeaseDuration: runspec.Duration(3 * time.Second), StepTimeout: runspec.Duration(10 * time.Second),
		GracePeriod: runspec.Duration(10 * time.Second), DuePollInterval: runspec.Duration(50 * time.Millisecond),
		SweepInterval: runspec.Duration(time.Hour),
		HTTP:          runspec.HTTPPolicy{AllowedCIDRs: []string{"127.0.0.0/8"}, MaxResponseBytes: 1 << 16},
	}
	if err := json.Unmarshal([]byte(definition), &w.spec.Definition); err != nil {
		t.Fatal(err)
	}
	for _, edit := range change {
		edit(&w.spec)
	}
	if _, err := stream.Ensure(t.Context(), js, w.spec.Stream); err != nil {
		t.Fatal(err)
	}
	return w
}

// started is a worker that runs.
type started struct {
	*Worker
	stop func()
}

// start runs a worker over connections of its own; stop drains it. It is stopped at the test's end.
func (w *world) start(change ...func(*Config)) *started {
	w.t.Helper()
	nc := w.broker.Connect(nats.ReconnectBufSize(-1), nats.RetryOnFailedConnect(true))
	client, err := httprequest.NewClient(w.spec.HTTP)
	if err != nil {
		w.t.Fatal(err)
	}
	config := Config{
		Spec: w.spec, Pool: testenv.Pool(w.t, w.url), NATS: nc, Types: node.Types(), HTTP: client,
		Log:      slog.New(slog.NewJSONHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelInfo})),
		Registry: w.registry, Name: w.t.Name(),
	}
	for _, edit := range change {
		edit(&config)
	}
	worker, err := New(config)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	var once sync.Once
	s := &started{Worker: worker, stop: func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				if err != nil {
					w.t.Errorf("run: %v", err)
				}
			case <-time.After(waitLimit):
				w.t.Error("the worker does not stop")
			}
		})
	}}
	w.t.Cleanup(s.stop)
	return s
}

func ownRegistry(c *Config) { c.Registry = prometheus.NewRegistry() }

// emit commits an event as an application does, and publishes it as the relay does.
func (w *world) emit(org, eventType, payload string) uuid.UUID {
	w.t.Helper()
	d := w.commit(org, eventType, payload, nil)
	w.publish(d)
	return d.ID
}

// commit writes an event to the outbox; id nil: a new one.
func (w *world) commit(org, eventType, payload string, id *uuid.UUID) *event.Delivery {
	w.t.Helper()
	var text string
	d := &event.Delivery{OperationVersion: 1}
	row := w.db.QueryRow(context.Background(), `WITH e AS (
			SELECT relayops.emit_event($1, $2, $3::jsonb, event_id => $4, headers => '{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}') AS id)
		SELECT id FROM e`, org, eventType, payload, id)
	if err := row.Scan(&d.ID); err != nil {
		w.t.Fatalf("emit an event: %v", err)
	}
	row = w.db.QueryRow(context.Background(), `SELECT payload::text, position, occurred_at
		FROM relayops.outbox_events WHERE org_id = $1 AND event_id = $2`, org, d.ID)
	if err := row.Scan(&text, &d.Position, &d.OccurredAt); err != nil {
		w.t.Fatalf("read the event: %v", err)
	}
	d.OrgID, d.EventType, d.EventVersion, d.Payload = org, eventType, 1, json.RawMessage(text)
	d.Headers = map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	d.PayloadSHA256 = event.PayloadHash(d.Payload)
	return d
}

// foreign is an event that is in no outbox.
func (w *world) foreign(org, eventType, payload string) *event.Delivery {
	w.t.Helper()
	envelope, err := event.New(org, eventType, json.RawMessage(payload))
	if err != nil {
		w.t.Fatal(err)
	}
	return &event.Delivery{
		Envelope: envelope, OperationVersion: 1, PayloadSHA256: event.PayloadHash(envelope.Payload),
	}
}

func (w *world) publish(d *event.Delivery) uint64 {
	w.t.Helper()
	headers, body := event.Encode(d, "")
	return w.publishRaw(d.OrgID, d.EventType, headers, body)
}

func (w *world) publishRaw(org, eventType string, headers map[string][]string, body []byte) uint64 {
	w.t.Helper()
	msg := &nats.Msg{Subject: event.Subject("events", org, eventType), Header: headers, Data: body}
	published, err := w.js.PublishMsg(context.Background(), msg)
	if err != nil {
		w.t.Fatalf("publish: %v", err)
	}
	return published.Sequence
}

// eventually waits until check says nothing.
func (w *world) eventually(what string, check func() string) {
	w.t.Helper()
	deadline := time.Now().Add(waitLimit)
	for {
		problem := check()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: %s", what, problem)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// stateOf an execution of the pipeline; empty when there is none.
func (w *world) stateOf(org string, id uuid.UUID) string {
	w.t.Helper()
	return query[string](w, `SELECT coalesce((SELECT state FROM relayops.pipeline_executions
		WHERE org_id = $1 AND event_id = $2 AND pipeline_key = $3), '')`, org, id, w.spec.PipelineKey)
}

func (w *world) awaitState(org string, id uuid.UUID, want string) {
	w.t.Helper()
	w.eventually("state of "+id.String(), func() string {
		if got := w.stateOf(org, id); got != want {
			return fmt.Sprintf("%q, want %s", got, want)
		}
		return ""
	})
}

// awaitSettled waits until the broker has nothing left to deliver or to hear of.
func (w *world) awaitSettled() {
	w.t.Helper()
	w.eventually("the consumer", func() string {
		consumer, err := w.js.Consumer(context.Background(), testStream, w.spec.Consumer)
		if err != nil {
			return err.Error()
		}
		info := consumer.CachedInfo()
		if info.NumPending > 0 || info.NumAckPending > 0 {
			return fmt.Sprintf("%d pending, %d unacknowledged", info.NumPending, info.NumAckPending)
		}
		return ""
	})
}

func query[T any](w *world, sql string, arguments ...any) T {
	w.t.Helper()
	var value T
	if err := w.db.QueryRow(context.Background(), sql, arguments...).Scan(&value); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// count counts rows of one of our tables.
func (w *world) count(table, where string, arguments ...any) int {
	w.t.Helper()
	return query[int](w, "SELECT count(*) FROM relayops."+table+" WHERE "+where, arguments...)
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// erp is a service that pipelines call. answer gives the status of the n-th call (from 1) about an order.
type erp struct {
	*httptest.Server
	mu    sync.Mutex
	calls []call
}

type call struct{ order, key, trace string }

func newERP(t *testing.T, answer func(n int, order string, w http.ResponseWriter)) *erp {
	t.Helper()
	e := &erp{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Number string `json:"number"`
		}
		_ = json.NewDecoder(r.Body).Decode(&body) // A test's own pipeline wrote it.
		e.mu.Lock()
		e.calls = append(e.calls, call{body.Number, r.Header.Get("Idempotency-Key"), r.Header.Get("traceparent")})
		n := 0
		for _, c := range e.calls {
			if c.order == body.Number {
				n++
			}
		}
		e.mu.Unlock()
		answer(n, body.Number, w)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *erp) callsFor(order string) []call {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []call
	for _, c := range e.calls {
		if c.order == order {
			found = append(found, c)
		}
	}
	return found
}

// gate blocks those who wait at it until it is opened, at the test's end at the latest.
type gate struct {
	once   sync.Once
	opened chan struct{}
}

func newGate(t *testing.T) *gate {
	g := &gate{opened: make(chan struct{})}
	t.Cleanup(g.open)
	return g
}

func (g *gate) open() { g.once.Do(func() { close(g.opened) }) }

func (g *gate) wait() { <-g.opened }

func ok(_ int, _ string, w http.ResponseWriter) { w.WriteHeader(http.StatusOK) }

// pureDefinition has one step that calls nothing.
const pureDefinition = `{"nodes": [{"id": "start", "type": "start"},
	{"id": "ok", "type": "set-status", "config": {"statusTag": "success", "name": "Done", "phase": "order.post"}}],
	"edges": [{"from": "start", "to": "ok"}]}`

// erpDefinition is the pipeline of requirement A6 against an ERP, with an emitted event at its end.
func erpDefinition(url string) string {
	return fmt.Sprintf(`{"nodes": [{"id": "start", "type": "start"},
	{"id": "notify", "type": "http-request", "config": {"method": "POST", "url": "%s/orders",
		"body": {"number": "{{number}}"}}},
	{"id": "emit", "type": "emit-event", "config": {"eventType": "OrderIntegrated", "payload": {"number": "{{number}}"}}},
	{"id": "ok", "type": "set-status", "config": {"statusTag": "success", "name": "Integrated", "phase": "order.post"}}],
	"edges": [{"from": "start", "to": "notify"}, {"from": "notify", "to": "emit", "branch": "success"},
		{"from": "emit", "to": "ok"}]}`, url)
}

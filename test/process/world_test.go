package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/localpostgres"
	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/testenv"
)

const (
	streamName   = "RELAYOPS"
	consumerName = "order-post"
	pipelineKey  = "test/shop/order-post"
	// claimLease and executionLease are short, so that a frozen process is past them soon.
	claimLease     = 3 * time.Second
	executionLease = 3 * time.Second
)

// world is everything that one test has for itself.
type world struct {
	t      *testing.T
	url    string
	pool   *pgxpool.Pool
	broker *testenv.Broker
	sink   *sink
	*producer

	relaySpec  runspec.Relay
	workerSpec runspec.Worker
	started    int
	daemons    []*daemon
}

// newWorld has a database of its own in the shared server.
func newWorld(t *testing.T) *world {
	t.Helper()
	return worldOn(t, testenv.Database(t))
}

// newWorldWithServer has a PostgreSQL server of its own, to be stopped and killed.
func newWorldWithServer(t *testing.T) (*world, *localpostgres.Server) {
	t.Helper()
	server := testenv.Postgres(t)
	w := worldOn(t, server.URL())
	// A crash may lose no commit that was answered: that much RelayOps takes for granted.
	if _, err := w.pool.Exec(t.Context(), "ALTER DATABASE relayops SET synchronous_commit = on"); err != nil {
		t.Fatal(err)
	}
	w.pool.Reset()
	return w, server
}

func worldOn(t *testing.T, databaseURL string) *world {
	t.Helper()
	w := &world{t: t, url: databaseURL, sink: newSink(t), broker: testenv.NATS(t)}
	w.pool = testenv.Pool(t, databaseURL)
	w.producer = newProducer(w.pool)
	if _, err := w.pool.Exec(t.Context(), createShop); err != nil {
		t.Fatalf("make the shop's table: %v", err)
	}
	database := runspec.Database{URL: databaseURL, MaxConnections: 8}
	broker := runspec.NATS{URL: w.broker.URL()}
	stream := runspec.Stream{
		Name: streamName, SubjectPrefix: "events", Replicas: 1, MaxBytes: 256 << 20, MaxAge: hours(168),
		DuplicateWindow: seconds(120), MaxMessageBytes: 1 << 20, InstanceKey: "test",
	}
	w.relaySpec = runspec.Relay{
		Key: "test/shop/main", Database: database, NATS: broker, Stream: stream,
		PollInterval: seconds(0.2), BatchSize: 20, Claimers: 2, ClaimLease: runspec.Duration(claimLease),
		PublishTimeout: seconds(1), MaxAttempts: 10, BackOff: shortBackOff, MaxInlinePayloadBytes: 256 << 10,
	}
	w.workerSpec = runspec.Worker{
		PipelineKey: pipelineKey, Database: database, NATS: broker, Stream: stream, Consumer: consumerName,
		Subscription: runspec.Subscription{
			Trigger: "order.post", EventTypes: []string{"OrderConfirmed"}, StartFrom: "Beginning",
		},
		Definition: w.pipeline(), Revision: "r1", Concurrency: 4, Replicas: 2, MaxAttempts: 5, BackOff: shortBackOff,
		MaxDeliver: 100, LeaseDuration: runspec.Duration(executionLease), StepTimeout: seconds(20),
		GracePeriod: seconds(30), DuePollInterval: seconds(0.2), SweepInterval: seconds(2),
		HTTP: runspec.HTTPPolicy{AllowedCIDRs: []string{"127.0.0.0/8"}, MaxResponseBytes: 1 << 20},
	}
	return w
}

var shortBackOff = runspec.BackOff{Initial: seconds(0.2), Max: seconds(2), Multiplier: 2, Jitter: 0.2}

func seconds(n float64) runspec.Duration { return runspec.Duration(n * float64(time.Second)) }
func hours(n int) runspec.Duration       { return runspec.Duration(n) * runspec.Duration(time.Hour) }

// pipeline has an outbound call, a status and an emitted event: one of each kind of effect.
func (w *world) pipeline() engine.Definition {
	raw := func(format string, arguments ...any) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(format, arguments...))
	}
	return engine.Definition{
		Nodes: []engine.Node{
			{ID: "start", Type: "start"},
			{ID: "notify", Type: "http-request", Config: raw(
				`{"method": "POST", "url": %q, "body": {"number": "{{number}}", "total": "{{total}}"}}`,
				w.sink.server.URL+"/orders")},
			{ID: "ok", Type: "set-status", Config: raw(
				`{"statusTag": "success", "name": "Integrated", "phase": "order.post"}`)},
			{ID: "announce", Type: "emit-event", Config: raw(
				`{"eventType": "OrderIntegrated", "payload": {"number": "{{number}}"}}`)},
		},
		Edges: []engine.Edge{
			{From: "start", To: "notify"},
			{From: "notify", To: "ok", Branch: "success"},
			{From: "ok", To: "announce"},
		},
	}
}

// relay and worker start a process; it dies at the crash point unless that is empty.
func (w *world) relay(crashAt string) *daemon {
	w.t.Helper()
	spec := w.relaySpec
	return w.start("relay", crashAt, func(address string) any { spec.Server.Address = address; return spec })
}

func (w *world) worker(crashAt string) *daemon {
	w.t.Helper()
	spec := w.workerSpec
	return w.start("worker", crashAt, func(address string) any { spec.Server.Address = address; return spec })
}

func (w *world) start(program, crashAt string, spec func(address string) any) *daemon {
	w.t.Helper()
	w.started++
	address := freeAddress(w.t)
	d := startDaemon(w.t, program, fmt.Sprintf("%s-%d", program, w.started), address, spec(address), crashAt)
	w.daemons = append(w.daemons, d)
	return d
}

// jetStream is a connection of the test's own.
func (w *world) jetStream() jetstream.JetStream {
	w.t.Helper()
	js, err := jetstream.New(w.broker.Connect())
	if err != nil {
		w.t.Fatal(err)
	}
	return js
}

// one reads a single value from the database; it retries while the server is away.
func one[T any](w *world, sql string, arguments ...any) T {
	w.t.Helper()
	var value T
	eventually(w.t, func() error {
		ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
		defer cancel()
		return w.pool.QueryRow(ctx, sql, arguments...).Scan(&value)
	})
	return value
}

// eventuallyEqual waits until the query gives the value.
func eventuallyEqual[T comparable](w *world, wanted T, sql string, arguments ...any) {
	w.t.Helper()
	eventually(w.t, func() error {
		var found T
		err := w.pool.QueryRow(w.t.Context(), sql, arguments...).Scan(&found)
		if err == nil && found != wanted {
			err = fmt.Errorf("found %v, wanted %v: %s", found, wanted, sql)
		}
		return err
	})
}

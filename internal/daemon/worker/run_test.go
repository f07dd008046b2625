package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/stream"
	"github.com/relayops/relayops/internal/testenv"
	"github.com/relayops/relayops/internal/worker"
)

func specification(t *testing.T, databaseURL, natsURL, address string) runspec.Worker {
	t.Helper()
	second := runspec.Duration(time.Second)
	spec := runspec.Worker{
		PipelineKey: "test/shop/pure",
		Database:    runspec.Database{URL: databaseURL, MaxConnections: 4},
		NATS:        runspec.NATS{URL: natsURL},
		Stream:      runspec.Stream{Name: "EVENTS", SubjectPrefix: "events", InstanceKey: "test"},
		Server:      runspec.Server{Address: address},
		Consumer:    "pure",
		Subscription: runspec.Subscription{
			Trigger: "order.post", EventTypes: []string{"OrderConfirmed"}, StartFrom: "Beginning",
		},
		Revision: "r1", Concurrency: 2, Replicas: 1, MaxAttempts: 3, MaxDeliver: 10,
		BackOff:       runspec.BackOff{Initial: second, Max: second, Multiplier: 2},
		LeaseDuration: 5 * second, StepTimeout: second, GracePeriod: 6 * second,
		DuePollInterval: second / 5, SweepInterval: second,
	}
	if err := json.Unmarshal([]byte(`{"nodes": [{"id": "start", "type": "start"}]}`), &spec.Definition); err != nil {
		t.Fatal(err)
	}
	return spec
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// start runs a worker and gives what ends it and waits for it.
func start(t *testing.T, spec runspec.Worker, options ...Option) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, spec, options...) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("Run: %v", err)
				}
			case <-time.After(20 * time.Second):
				t.Error("the worker does not end")
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

func get(address, path string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(response.StatusCode, " ", string(body))
}

func eventually(t *testing.T, what string, check func() (found string, done bool)) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		found, done := check()
		if done {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", what, found)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// publish makes the stream and publishes an event.
func publish(t *testing.T, broker *testenv.Broker, spec runspec.Worker, subjectType string) {
	t.Helper()
	js, err := jetstream.New(broker.Connect())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Ensure(t.Context(), js, spec.Stream); err != nil {
		t.Fatal(err)
	}
	envelope, err := event.New("acme", subjectType, json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	headers, body := event.Encode(&event.Delivery{
		Envelope: envelope, OperationVersion: 1, PayloadSHA256: event.PayloadHash(envelope.Payload),
	}, "")
	msg := &nats.Msg{Subject: event.Subject("events", "acme", subjectType), Header: headers, Data: body}
	if _, err := js.PublishMsg(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
}

func TestRunWithItsEndpoint(t *testing.T) {
	databaseURL, broker := testenv.EmptyDatabase(t), testenv.NATS(t)
	address := freeAddress(t)
	spec := specification(t, databaseURL, broker.URL(), address)
	stop := start(t, spec)
	eventually(t, "the reason", func() (string, bool) {
		found := get(address, "/readyz")
		return found, strings.HasPrefix(found, "503 SchemaNotReady") && strings.Contains(found, "relayops migrate up")
	})
	if found := get(address, "/healthz"); !strings.HasPrefix(found, "200") {
		t.Errorf("healthz: %s", found)
	}
	stop()

	start(t, spec, WithMigrations(true))
	eventually(t, "the reason", func() (string, bool) {
		found := get(address, "/readyz")
		return found, strings.HasPrefix(found, "503 StreamMissing")
	})
	publish(t, broker, spec, "OrderConfirmed")
	eventually(t, "readiness", func() (string, bool) {
		found := get(address, "/readyz")
		return found, strings.HasPrefix(found, "200")
	})
	eventually(t, "the execution", func() (string, bool) {
		found := get(address, "/metrics")
		return found, strings.Contains(found, `relayops_executions_total{outcome="succeeded",pipeline="test/shop/pure"} 1`)
	})
	if found := get(address, "/status"); !strings.Contains(found, `"state": "Running"`) {
		t.Errorf("status: %s", found)
	}
}

// Several workers of one process share its connections.
func TestWorkersShareConnections(t *testing.T) {
	databaseURL, broker := testenv.Database(t), testenv.NATS(t)
	pool, nc := testenv.Pool(t, databaseURL), broker.Connect()
	one := specification(t, databaseURL, broker.URL(), "")
	two := one
	two.PipelineKey, two.Consumer = "test/shop/other", "other"
	publish(t, broker, one, "OrderConfirmed")
	stopped := make([]func(), 0, 2)
	for _, spec := range []runspec.Worker{one, two} {
		stopped = append(stopped, start(t, spec, WithPool(pool), WithNATS(nc)))
	}
	eventually(t, "an execution of each", func() (string, bool) {
		var n int
		err := pool.QueryRow(t.Context(), "SELECT count(*) FROM relayops.pipeline_executions WHERE state = 'SUCCEEDED'").Scan(&n)
		return fmt.Sprint(n, err), n == 2
	})
	for _, stop := range stopped {
		stop()
	}
	if err := pool.Ping(t.Context()); err != nil || !nc.IsConnected() {
		t.Errorf("a worker closed what it was lent: %v, %t", err, nc.IsConnected())
	}
}

func TestMistakesAreNamed(t *testing.T) {
	databaseURL, broker := testenv.Database(t), testenv.NATS(t)
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	good := specification(t, databaseURL, broker.URL(), "")
	port, cidr, graph := good, good, good
	port.Server.Address = taken.Addr().String()
	cidr.HTTP.AllowedCIDRs = []string{"10.0.0.0/99"}
	graph.Definition.Nodes = nil
	for want, spec := range map[string]runspec.Worker{
		"the port is taken": port, "10.0.0.0/99": cidr, "nodes": graph,
	} {
		if err := Run(t.Context(), spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}

func TestObserverAndLog(t *testing.T) {
	databaseURL, broker := testenv.Database(t), testenv.NATS(t)
	var log bytes.Buffer
	seen := make(chan *worker.Worker, 1)
	stop := start(t, specification(t, databaseURL, broker.URL(), ""),
		WithObserver(func(w *worker.Worker) { seen <- w }), WithLog(slog.New(slog.NewTextHandler(&log, nil))))
	running := <-seen
	eventually(t, "the status", func() (string, bool) {
		reason := string(running.Status().Reason)
		return reason, reason == string(worker.ReasonStreamMissing)
	})
	stop()
	if !strings.Contains(log.String(), "StreamMissing") {
		t.Errorf("log: %s", log.String())
	}
}

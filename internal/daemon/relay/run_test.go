package relay

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/relayops/relayops/internal/relay"
	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/testenv"
)

func specification(databaseURL, natsURL, address string) runspec.Relay {
	second := runspec.Duration(time.Second)
	return runspec.Relay{
		Key:      "test/shop/main",
		Database: runspec.Database{URL: databaseURL, MaxConnections: 2},
		NATS:     runspec.NATS{URL: natsURL},
		Stream: runspec.Stream{
			Name: "EVENTS", SubjectPrefix: "events", Replicas: 1, MaxBytes: 64 << 20, MaxAge: 3600 * second,
			DuplicateWindow: 120 * second, MaxMessageBytes: 1 << 20, InstanceKey: "test",
		},
		Server:       runspec.Server{Address: address},
		PollInterval: second / 5, BatchSize: 20, Claimers: 4, ClaimLease: 5 * second, PublishTimeout: 2 * second,
		MaxAttempts: 3, BackOff: runspec.BackOff{Initial: second, Max: second, Multiplier: 2},
		MaxInlinePayloadBytes: 256 << 10,
	}
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

// start runs a relay and gives what ends it and waits for it.
func start(t *testing.T, spec runspec.Relay, options ...Option) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, spec, options...) }()
	stop = func() error {
		cancel()
		select {
		case err := <-ended:
			ended <- nil
			return err
		case <-time.After(20 * time.Second):
			return fmt.Errorf("the relay does not end")
		}
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return stop
}

func get(address, path string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
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
	return fmt.Sprintf("%d %s", response.StatusCode, body)
}

func waitFor(t *testing.T, address, path, want string) {
	t.Helper()
	got := ""
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if got = get(address, path); strings.Contains(got, want) {
			return
		}
	}
	t.Fatalf("%s: %q, want %q", path, got, want)
}

// Without its schema a relay lives, is not ready and says what to do; with migrations wanted it helps itself.
func TestSchemaKeepsTheRelayNotReady(t *testing.T) {
	database, broker, address := testenv.EmptyDatabase(t), testenv.NATS(t), freeAddress(t)
	stop := start(t, specification(database, broker.URL(), address))
	waitFor(t, address, "/readyz", "503 SchemaNotReady: the database has no RelayOps schema: run relayops migrate up")
	if got := get(address, "/healthz"); !strings.HasPrefix(got, "200") {
		t.Errorf("/healthz: %s", got)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	var observed *relay.Relay
	address = freeAddress(t)
	start(t, specification(database, broker.URL(), address), WithMigrations(true),
		WithObserver(func(r *relay.Relay) { observed = r }))
	waitFor(t, address, "/readyz", "200 ready")
	waitFor(t, address, "/metrics", `relayops_relay_paused{reason="SchemaNotReady"} 0`)
	waitFor(t, address, "/status", `"state": "Running"`)
	pool := testenv.Pool(t, database)
	if _, err := pool.Exec(t.Context(), `INSERT INTO relayops.outbox_events (org_id, event_type, payload) VALUES ('a', 'T', '1')`); err != nil {
		t.Fatal(err)
	}
	waitFor(t, address, "/status", `"published": 1`)
	if observed == nil || observed.Status().Published != 1 {
		t.Error("the observer did not get the relay")
	}
}

// A mapped table is checked at start, each missing or mistyped column named; it is noticed when it is mended.
func TestMappedTableIsChecked(t *testing.T) {
	database, broker, address := testenv.EmptyDatabase(t), testenv.NATS(t), freeAddress(t)
	pool := testenv.Pool(t, database)
	if _, err := pool.Exec(t.Context(), `CREATE TABLE public."Outbox" ("id" uuid, org_id text NOT NULL, event_type text NOT NULL,
		payload text, occurred_at timestamptz NOT NULL, status text NOT NULL, available_at timestamptz NOT NULL, PRIMARY KEY (org_id, "id"))`); err != nil {
		t.Fatal(err)
	}
	spec := specification(database, broker.URL(), address)
	spec.Table = runspec.Table{Name: "Outbox", Columns: map[string]string{"event_id": "id"}}
	for _, optional := range []string{
		"position", "event_version", "aggregate_type", "aggregate_id", "correlation_id", "causation_id", "payload_sha256",
		"headers", "created_at", "operation_version", "last_error", "published_at", "stream", "stream_seq",
	} {
		spec.Table.Columns[optional] = ""
	}
	start(t, spec)
	waitFor(t, address, "/readyz", "503 SchemaNotReady")
	for _, want := range []string{"attempts", "payload"} {
		if got := get(address, "/readyz"); !strings.Contains(got, want) {
			t.Errorf("column %s is not named: %s", want, got)
		}
	}
	if _, err := pool.Exec(t.Context(), `ALTER TABLE public."Outbox" ADD attempts integer NOT NULL DEFAULT 0,
		ALTER payload TYPE jsonb USING payload::jsonb`); err != nil {
		t.Fatal(err)
	}
	waitFor(t, address, "/readyz", "200 ready")
}

func TestRunMistakes(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	good := specification("postgres://u@127.0.0.1:1/none", "nats://127.0.0.1:1", listener.Addr().String())
	wrong := good
	wrong.BatchSize, wrong.Table = 0, runspec.Table{Name: "t", Columns: map[string]string{"payload": ""}}
	noDatabase := good
	noDatabase.Database.URL = ""
	for want, spec := range map[string]runspec.Relay{
		"the port is taken":                       good,
		"batchSize: found 0, allowed: 1 to 10000": wrong,
		"allowed: exactly one of url":             noDatabase,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := Run(ctx, spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run: %v, want %q", err, want)
		}
		cancel()
	}
}

// Both servers away: the process lives, is not ready, and ends when told.
func TestRunsWithoutServers(t *testing.T) {
	address := freeAddress(t)
	stop := start(t, specification("postgres://u@127.0.0.1:1/none", "nats://127.0.0.1:1", address))
	waitFor(t, address, "/readyz", "503 DatabaseUnreachable")
	waitFor(t, address, "/healthz", "200")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

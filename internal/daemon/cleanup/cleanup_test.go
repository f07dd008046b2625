package cleanup_test

import (
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/daemon/cleanup"
	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/stream"
	"github.com/relayops/relayops/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

func specs(t *testing.T) (runspec.Relay, runspec.Worker, jetstream.JetStream) {
	t.Helper()
	broker := testenv.NATS(t)
	js, err := jetstream.New(broker.Connect())
	if err != nil {
		t.Fatal(err)
	}
	wanted := runspec.Stream{
		Name: "EVENTS", SubjectPrefix: "events", Replicas: 1, MaxBytes: 64 << 20, MaxAge: runspec.Duration(24 * time.Hour),
		DuplicateWindow: runspec.Duration(2 * time.Minute), MaxMessageBytes: 1 << 20, InstanceKey: "main",
	}
	if _, err := stream.Ensure(t.Context(), js, wanted); err != nil {
		t.Fatal(err)
	}
	nats := runspec.NATS{URL: broker.URL()}
	return runspec.Relay{Key: "main/shop/orders", NATS: nats, Stream: wanted},
		runspec.Worker{
			PipelineKey: "main/shop/order-post", NATS: nats, Stream: wanted, Consumer: "order-post",
			Database: runspec.Database{URL: testenv.Database(t), MaxConnections: 2},
		}, js
}

func makeConsumer(t *testing.T, js jetstream.JetStream, owner string) {
	t.Helper()
	_, err := js.CreateConsumer(t.Context(), "EVENTS", jetstream.ConsumerConfig{
		Durable: "order-post", AckPolicy: jetstream.AckExplicitPolicy,
		Metadata: map[string]string{stream.MetadataPipeline: owner},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A stream goes with the relay that made it, once and again, and one of another instance stays.
func TestRelay(t *testing.T) {
	relay, _, js := specs(t)
	foreign := relay
	foreign.Stream.InstanceKey = "other"
	if err := cleanup.Relay(t.Context(), foreign, quiet); !isOwned(err) {
		t.Errorf("found %v, want the owner", err)
	}
	if _, err := js.Stream(t.Context(), "EVENTS"); err != nil {
		t.Errorf("another instance's cleanup removed the stream: %v", err)
	}
	for range 2 {
		if err := cleanup.Relay(t.Context(), relay, quiet); err != nil {
			t.Fatal(err)
		}
		if _, err := js.Stream(t.Context(), "EVENTS"); !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Errorf("found %v, want no stream", err)
		}
	}
}

func isOwned(err error) bool {
	_, is := errors.AsType[*stream.OwnedByOtherError](err)
	return is
}

// A consumer and its subscription go with their pipeline; those of another pipeline stay.
func TestWorker(t *testing.T) {
	_, worker, js := specs(t)
	pool := testenv.Pool(t, worker.Database.URL)
	for _, key := range []string{worker.PipelineKey, "main/shop/another"} {
		_, err := pool.Exec(t.Context(), `INSERT INTO relayops.pipeline_subscriptions
			(pipeline_key, trigger, orgs, from_position, stream, stream_incarnation, start_seq, swept_seq)
			VALUES ($1, 'order.post', '{}', 0, 'EVENTS', now(), 1, 0)`, key)
		if err != nil {
			t.Fatal(err)
		}
	}
	makeConsumer(t, js, "main/shop/another")
	if err := cleanup.Worker(t.Context(), worker, quiet); !isOwned(err) {
		t.Errorf("found %v, want the owner", err)
	}
	if err := js.DeleteConsumer(t.Context(), "EVENTS", "order-post"); err != nil {
		t.Fatal(err)
	}
	makeConsumer(t, js, worker.PipelineKey)
	for range 2 {
		if err := cleanup.Worker(t.Context(), worker, quiet); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := js.Consumer(t.Context(), "EVENTS", "order-post"); !errors.Is(err, jetstream.ErrConsumerNotFound) {
		t.Errorf("found %v, want no consumer", err)
	}
	var left string
	err := pool.QueryRow(t.Context(), `SELECT string_agg(pipeline_key, ',') FROM relayops.pipeline_subscriptions`).Scan(&left)
	if err != nil || left != "main/shop/another" {
		t.Errorf("found the subscriptions %q, %v; want the other pipeline's alone", left, err)
	}
}

// Without its credentials a cleanup gives up at once, with the word that the operator looks for.
func TestMissingSecret(t *testing.T) {
	relay, worker, _ := specs(t)
	missing := filepath.Join(t.TempDir(), "nats", "token")
	relay.NATS.TokenFile = missing
	worker.Database = runspec.Database{URLFile: missing, MaxConnections: 2}
	for _, err := range []error{cleanup.Relay(t.Context(), relay, quiet), cleanup.Worker(t.Context(), worker, quiet)} {
		if !errors.Is(err, cleanup.ErrSecretMissing) {
			t.Errorf("found %v, want %v", err, cleanup.ErrSecretMissing)
		}
	}
}

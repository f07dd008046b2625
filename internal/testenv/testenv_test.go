package testenv_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestDatabasesAreApart(t *testing.T) {
	first, second := testenv.Pool(t, testenv.Database(t)), testenv.Pool(t, testenv.Database(t))
	if _, err := first.Exec(t.Context(), "SELECT relayops.emit_event('acme', 'Ping', '{}')"); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := second.QueryRow(t.Context(), "SELECT count(*) FROM relayops.outbox_events").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if rows != 0 {
		t.Errorf("found %d rows of another test's database, want none", rows)
	}
}

func TestBrokerKeepsItsStreamOverAKill(t *testing.T) {
	broker := testenv.NATS(t)
	conn := broker.Connect()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "KEPT", Subjects: []string{"kept"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "kept", []byte("one")); err != nil {
		t.Fatal(err)
	}
	broker.Kill()
	broker.Start()
	for deadline := time.Now().Add(10 * time.Second); !conn.IsConnected(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the client did not come back")
		}
	}
	stream, err := js.Stream(t.Context(), "KEPT")
	if err != nil {
		t.Fatal(err)
	}
	if got := stream.CachedInfo().State.Msgs; got != 1 {
		t.Errorf("found %d messages after the kill, want 1", got)
	}
}

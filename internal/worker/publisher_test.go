package worker

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/testenv"
)

// A full account and a broker that is gone are no event's fault; a subject without a stream counts, and may pass.
func TestPublisherTellsFaultsApart(t *testing.T) {
	broker := testenv.NATS(t)
	js, err := jetstream.New(broker.Connect())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "FULL", Subjects: []string{"full"}, MaxMsgs: 1, Discard: jetstream.DiscardNew,
	}); err != nil {
		t.Fatal(err)
	}
	away := 0
	p := &publisher{js: js, away: func() { away++ }}
	if err := p.Publish(t.Context(), "full", "1", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(t.Context(), "full", "2", nil, nil); !errors.Is(err, errBrokerAway) || away != 1 {
		t.Errorf("full stream: %v, away %d times, want an outage", err, away)
	}
	err = p.Publish(t.Context(), "nowhere", "3", nil, nil)
	if failure, ok := errors.AsType[*engine.Failure](err); !ok || failure.Class != engine.ClassRetry || away != 1 {
		t.Errorf("no stream: %v, away %d times, want a failure that may pass", err, away)
	}
	broker.Kill()
	if err := p.Publish(t.Context(), "full", "4", nil, nil); !errors.Is(err, errBrokerAway) || away != 2 {
		t.Errorf("broker killed: %v, away %d times, want an outage", err, away)
	}
}

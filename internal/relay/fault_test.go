package relay

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/stream"
)

// The relay gives reasons to the faults that internal/stream tells apart, and agrees with it on whose they are.
func TestVerdictsAgreeWithFaults(t *testing.T) {
	for code, verdict := range apiVerdicts {
		want := stream.FaultBroker
		if verdict.scope == scopeEvent {
			want = stream.FaultMessage
		}
		if got := stream.FaultOf(&jetstream.APIError{ErrorCode: code}); got != want {
			t.Errorf("code %d: fault %d, want %d", code, got, want)
		}
	}
}

package worker

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/execution"
)

// hand is what a worker has in hand: messages, for which the broker is told that they are in work, and running
// attempts, whose leases are renewed.
type hand struct {
	mu       sync.Mutex
	messages map[jetstream.Msg]struct{}
	attempts map[execution.Lease]*running
}

// running is an attempt that runs.
type running struct {
	lease execution.Lease
	watch *stopwatch
	// cancel ends the run with a cause.
	cancel context.CancelCauseFunc
}

func newHand() *hand {
	return &hand{messages: make(map[jetstream.Msg]struct{}), attempts: make(map[execution.Lease]*running)}
}

func (h *hand) takeMessage(msg jetstream.Msg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.messages[msg] = struct{}{}
}

func (h *hand) dropMessage(msg jetstream.Msg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.messages, msg)
}

func (h *hand) takeAttempt(r *running) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts[r.lease] = r
}

func (h *hand) dropAttempt(r *running) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.attempts, r.lease)
}

func (h *hand) attempt(lease execution.Lease) *running {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.attempts[lease]
}

func (h *hand) allMessages() []jetstream.Msg {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]jetstream.Msg, 0, len(h.messages))
	for msg := range h.messages {
		all = append(all, msg)
	}
	return all
}

func (h *hand) renewals() []execution.Renewal {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]execution.Renewal, 0, len(h.attempts))
	for _, r := range h.attempts {
		all = append(all, execution.Renewal{Lease: r.lease, Executed: r.watch.elapsed()})
	}
	return all
}

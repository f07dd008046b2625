package relay

import (
	"time"

	"github.com/relayops/relayops/internal/connect"
)

// Status is what a relay tells of itself. It holds no secret, and nothing of any event.
type Status struct {
	Key string `json:"key"`
	// State is Running, Paused or Suspended.
	State string `json:"state"`
	// Reason and Message say why a relay does not run; Since is when that, or running, began.
	Reason  Reason    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
	// Stream is the stream's name; StreamRecreated counts how often it was missing and made anew.
	Stream          string `json:"stream"`
	StreamRecreated uint64 `json:"streamRecreated"`
	// Listening: wake-ups reach this relay, so that it need not wait for its next poll.
	Listening bool `json:"listening"`
	// Pending, Waiting and Failed are rows of the outbox as of the last look, counted up to 10000; OldestAgeSeconds is
	// how long the oldest due one has been due.
	Pending          int64   `json:"pending"`
	Waiting          int64   `json:"waiting"`
	Failed           int64   `json:"failed"`
	OldestAgeSeconds float64 `json:"oldestAgeSeconds"`
	// Published and Failures count what this process did.
	Published       uint64     `json:"published"`
	Failures        uint64     `json:"failures"`
	LastPublishedAt *time.Time `json:"lastPublishedAt,omitempty"`
}

// States of a relay.
const (
	StateRunning   = "Running"
	StatePaused    = "Paused"
	StateSuspended = "Suspended"
)

// Status is the relay's state now.
func (r *Relay) Status() Status {
	reason, since, err := r.gate.state()
	s := Status{Key: r.spec.Key, State: StateRunning, Reason: reason, Since: since, Stream: r.spec.Stream.Name}
	switch {
	case reason != "":
		s.State = StatePaused
	case r.spec.Suspended:
		s.State = StateSuspended
	}
	if err != nil {
		s.Message = connect.Explain(err).Error()
	}
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	s.StreamRecreated, s.Listening = r.progress.streamRecreated, r.progress.listening
	s.Pending, s.Waiting, s.Failed = r.progress.backlog.Due, r.progress.backlog.Waiting, r.progress.backlog.Failed
	s.OldestAgeSeconds = r.progress.backlog.OldestDue.Seconds()
	s.Published, s.Failures = r.progress.published, r.progress.failures
	if !r.progress.lastPublished.IsZero() {
		at := r.progress.lastPublished
		s.LastPublishedAt = &at
	}
	return s
}

// Ready reports whether both servers are there and events can be published; a suspended relay is ready too.
func (r *Relay) Ready() (ready bool, reason string) {
	paused, _, err := r.gate.state()
	switch {
	case paused == "":
		return true, ""
	case err == nil:
		return false, string(paused)
	default:
		return false, string(paused) + ": " + connect.Explain(err).Error()
	}
}

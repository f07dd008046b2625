package worker

import (
	"time"

	"github.com/relayops/relayops/internal/connect"
)

// Status is what a worker tells of itself. It holds no secret, and nothing of any event.
type Status struct {
	PipelineKey string `json:"pipelineKey"`
	Revision    string `json:"revision"`
	// State is Running, Paused, Suspended or Draining.
	State string `json:"state"`
	// Reason and Message say why a worker takes nothing up; Since is when that, or running, began.
	Reason  Reason    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
	// Stream and Consumer are where the messages come from; StartSequence and FromPosition are where the subscription
	// began.
	Stream        string `json:"stream"`
	Consumer      string `json:"consumer"`
	StartSequence uint64 `json:"startSequence,omitempty"`
	FromPosition  int64  `json:"fromPosition,omitempty"`
	// InFlight is how many executions run now.
	InFlight int `json:"inFlight"`
}

// States of a worker.
const (
	StateRunning   = "Running"
	StatePaused    = "Paused"
	StateSuspended = "Suspended"
	StateDraining  = "Draining"
)

// Status is the worker's state now.
func (w *Worker) Status() Status {
	reason, since, err := w.state.get()
	s := Status{
		PipelineKey: w.spec.PipelineKey, Revision: w.spec.Revision, State: StateRunning, Reason: reason, Since: since,
		Stream: w.spec.Stream.Name, Consumer: w.spec.Consumer, InFlight: len(w.hand.renewals()),
	}
	switch {
	case w.stopping():
		s.State = StateDraining
	case reason != "":
		s.State = StatePaused
	case w.spec.Suspended:
		s.State = StateSuspended
	}
	if err != nil {
		s.Message = connect.Explain(err).Error()
	}
	if t := w.topology.Load(); t != nil {
		s.StartSequence, s.FromPosition = t.subscription.StartSeq, t.subscription.FromPosition
	}
	return s
}

// Ready reports whether the worker can do its work, and if not, why, in words for an operator. A suspended worker is
// ready: it does what it is told.
func (w *Worker) Ready() (ready bool, reason string) {
	s := w.Status()
	switch {
	case s.State == StateDraining:
		return false, "Draining: the worker stops"
	case s.Reason == "":
		return true, ""
	case s.Message == "":
		return false, string(s.Reason)
	default:
		return false, string(s.Reason) + ": " + s.Message
	}
}

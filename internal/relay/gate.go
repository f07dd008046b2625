package relay

import (
	"sync"
	"time"
)

// gate is open while the relay publishes, and holds the reason while it does not. The zero value is not used: see
// newGate.
type gate struct {
	now      func() time.Time
	onChange func(reason Reason)

	mu     sync.Mutex
	reason Reason
	err    error
	since  time.Time
	// shut is closed while the gate is.
	shut chan struct{}
}

func newGate(now func() time.Time, onChange func(Reason)) *gate {
	g := &gate{now: now, onChange: onChange, shut: make(chan struct{}), since: now()}
	g.pause(ReasonStarting, nil)
	return g
}

// pause shuts the gate, or changes the reason of a shut one.
func (g *gate) pause(reason Reason, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reason == "" {
		close(g.shut)
	}
	if g.reason != reason {
		g.since = g.now()
		g.onChange(reason)
	}
	g.reason, g.err = reason, err
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reason == "" {
		return
	}
	g.reason, g.err, g.since = "", nil, g.now()
	g.shut = make(chan struct{})
	g.onChange("")
}

func (g *gate) isOpen() bool {
	reason, _, _ := g.state()
	return reason == ""
}

func (g *gate) state() (reason Reason, since time.Time, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reason, g.since, g.err
}

// paused is closed once the gate shuts.
func (g *gate) paused() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

package worker

import (
	"context"
	"sync"
	"time"
)

// state is whether the worker can take things up, and if not, why. It has two parts: the database, of which every
// statement of the ledger tells, and the rest, of which prepare tells.
type state struct {
	mu       sync.Mutex
	now      func() time.Time
	onChange func(Reason)

	// databaseErr is why the database is away; nil while it answers, since databaseSince.
	databaseErr   error
	databaseSince time.Time
	// reason and err are of the rest.
	reason Reason
	err    error
	since  time.Time
	// changed is closed at every change.
	changed chan struct{}
}

func newState(now func() time.Time, onChange func(Reason)) *state {
	s := &state{now: now, onChange: onChange, reason: ReasonStarting, since: now(), changed: make(chan struct{})}
	onChange(ReasonStarting)
	return s
}

// observe is told what became of each statement.
func (s *state) observe(outage error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answers := outage == nil
	if answers && s.databaseErr == nil && !s.databaseSince.IsZero() {
		return // The usual case, at every statement.
	}
	if wasAnswering := s.databaseErr == nil; answers != wasAnswering || s.databaseSince.IsZero() {
		s.databaseSince = s.now()
		s.since = s.databaseSince
	}
	s.databaseErr = outage
	s.tell()
}

// set says whether the rest is ready: an empty reason.
func (s *state) set(reason Reason, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason != reason {
		s.since = s.now()
	}
	s.reason, s.err = reason, err
	s.tell()
}

// tell announces a change; the lock is held.
func (s *state) tell() {
	reason, _ := s.current()
	s.onChange(reason)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *state) current() (Reason, error) {
	if s.databaseErr != nil {
		return databaseReason(s.databaseErr), s.databaseErr
	}
	return s.reason, s.err
}

func (s *state) get() (reason Reason, since time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reason, err = s.current()
	return reason, s.since, err
}

// databaseAway reports an outage, and gives a channel that is closed at the next change.
func (s *state) databaseAway() (away bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.databaseErr != nil, s.changed
}

// databaseUpFor is how long the database has answered without a break.
func (s *state) databaseUpFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.databaseErr != nil || s.databaseSince.IsZero() {
		return 0
	}
	return s.now().Sub(s.databaseSince)
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

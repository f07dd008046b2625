package worker

import (
	"sync"
	"time"
)

// stopwatch measures how long an execution has been executing, in all its attempts, and calls expired when it has been
// for limit. It stands still while it is paused: waiting for the database is not executing.
type stopwatch struct {
	mu      sync.Mutex
	now     func() time.Time
	total   time.Duration
	since   time.Time
	running bool
	paused  int
	limit   time.Duration
	expired func()
	timer   *time.Timer
}

// startStopwatch starts with what earlier attempts took. A limit of 0 is none.
func startStopwatch(now func() time.Time, already, limit time.Duration, expired func()) *stopwatch {
	s := &stopwatch{now: now, total: already, limit: limit, expired: expired}
	s.run()
	return s
}

// run begins or goes on measuring; the lock is held, or nobody else knows the stopwatch.
func (s *stopwatch) run() {
	s.since, s.running = s.now(), true
	if s.limit > 0 {
		s.timer = time.AfterFunc(max(s.limit-s.total, 0), s.expired)
	}
}

func (s *stopwatch) halt() {
	if !s.running {
		return
	}
	s.total += max(s.now().Sub(s.since), 0)
	s.running = false
	if s.timer != nil {
		s.timer.Stop()
	}
}

// pause stops it until as many calls of resume.
func (s *stopwatch) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused++
	s.halt()
}

func (s *stopwatch) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused--; s.paused == 0 {
		s.run()
	}
}

// stop ends it for good.
func (s *stopwatch) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused++
	s.halt()
}

func (s *stopwatch) elapsed() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return s.total + max(s.now().Sub(s.since), 0)
	}
	return s.total
}

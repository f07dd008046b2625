package worker

import (
	"context"
	"sync"
)

// slots are the executions that may still begin.
type slots struct {
	mu   sync.Mutex
	free int
	// freed holds one signal at most: that there is a free slot.
	freed chan struct{}
}

func newSlots(n int) *slots {
	s := &slots{free: n, freed: make(chan struct{}, 1)}
	s.freed <- struct{}{}
	return s
}

// takeAll takes all that are free, one at least; 0 when ctx ends. Only one goroutine may take.
func (s *slots) takeAll(ctx context.Context) int {
	for {
		if ctx.Err() != nil {
			return 0
		}
		s.mu.Lock()
		taken := s.free
		s.free = 0
		s.mu.Unlock()
		if taken > 0 {
			return taken
		}
		select {
		case <-ctx.Done():
			return 0
		case <-s.freed:
		}
	}
}

func (s *slots) release(n int) {
	if n <= 0 {
		return
	}
	s.mu.Lock()
	s.free += n
	s.mu.Unlock()
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

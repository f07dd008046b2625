package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/relayops/relayops/internal/runspec"
)

// Daemons are what runs relays and workers. Each runs until its context ends, then drains and returns nil; an error
// is that of a daemon that gave up. Each names itself in the log.
type Daemons struct {
	Relay  func(ctx context.Context, spec runspec.Relay, log *slog.Logger) error
	Worker func(ctx context.Context, spec runspec.Worker, log *slog.Logger) error
}

// restartAfter is how long a daemon that gave up is left alone.
const restartAfter = 2 * time.Second

// supervisor keeps the slots.
type supervisor struct {
	daemons Daemons
	log     *slog.Logger
	// restartAfter is how long a slot waits after its daemon gave up.
	restartAfter time.Duration

	running map[slotKey]*slot
	desired map[slotKey]wanted
	ended   sync.WaitGroup
}

func newSupervisor(daemons Daemons, log *slog.Logger) *supervisor {
	return &supervisor{
		daemons: daemons, log: log, restartAfter: restartAfter,
		running: map[slotKey]*slot{}, desired: map[slotKey]wanted{},
	}
}

// slot is one relay or worker.
type slot struct {
	key slotKey
	// want holds the newest specification that the slot has not seen yet; nil: nothing may run.
	want chan *wanted
}

// apply makes desired what runs, and says what changed. It does not wait for what drains. It is called from one
// goroutine.
func (s *supervisor) apply(ctx context.Context, desired Desired) ([]change, error) {
	after, err := desired.slots()
	if err != nil {
		return nil, err
	}
	all := changes(s.desired, after)
	for _, one := range all {
		kept := s.running[one.slot]
		if kept == nil {
			kept = &slot{key: one.slot, want: make(chan *wanted, 1)}
			s.running[one.slot] = kept
			s.ended.Go(func() { s.keep(ctx, kept) })
		}
		if want, stays := after[one.slot]; stays {
			kept.set(&want)
		} else {
			kept.set(nil)
		}
	}
	s.desired = after
	return all, nil
}

// wait returns when every slot's daemon has returned.
func (s *supervisor) wait() { s.ended.Wait() }

// set replaces what the slot has not seen yet.
func (s *slot) set(want *wanted) {
	select {
	case <-s.want:
	default:
	}
	s.want <- want
}

// keep runs what the slot wants, until ctx ends.
func (s *supervisor) keep(ctx context.Context, slot *slot) {
	var want *wanted
	for {
		if want == nil {
			select {
			case want = <-slot.want:
				continue
			case <-ctx.Done():
				return
			}
		}
		next, err := s.runUntilChanged(ctx, slot, want)
		switch {
		case ctx.Err() != nil:
			return
		case next != nil:
			want = *next
		default:
			s.log.Error(slot.key.String()+" stopped by itself; it is started again", "error", err, "after", s.restartAfter)
			if want = s.pause(ctx, slot, want); ctx.Err() != nil {
				return
			}
		}
	}
}

// runUntilChanged runs want until the slot wants something else, which it returns once the run has drained, or until
// the daemon returns by itself, with its error.
func (s *supervisor) runUntilChanged(ctx context.Context, slot *slot, want *wanted) (next **wanted, err error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.run(running, want) }()
	select {
	case err := <-ended:
		if err == nil {
			err = errors.New("it returned without an error")
		}
		return nil, err
	case changed := <-slot.want:
		stop()
		if err := <-ended; err != nil {
			s.log.Error(slot.key.String()+" did not stop cleanly", "error", err)
		}
		return &changed, nil
	case <-ctx.Done():
		if err := <-ended; err != nil {
			s.log.Error(slot.key.String()+" did not stop cleanly", "error", err)
		}
		return nil, nil
	}
}

func (s *supervisor) run(ctx context.Context, want *wanted) (err error) {
	defer func() {
		// One daemon's mistake must not take the database and the other daemons with it.
		if caught := recover(); caught != nil {
			err = fmt.Errorf("panic: %v", caught)
		}
	}()
	if want.relay != nil {
		return s.daemons.Relay(ctx, *want.relay, s.log)
	}
	return s.daemons.Worker(ctx, *want.worker, s.log)
}

// pause waits after a daemon gave up, and gives what to run next: the same, or what is wanted instead.
func (s *supervisor) pause(ctx context.Context, slot *slot, want *wanted) *wanted {
	timer := time.NewTimer(s.restartAfter)
	defer timer.Stop()
	select {
	case <-timer.C:
		return want
	case changed := <-slot.want:
		return changed
	case <-ctx.Done():
		return nil
	}
}

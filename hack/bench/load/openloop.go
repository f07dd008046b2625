package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
)

// OpenLoop commits events at times that are fixed before it begins (a Poisson process), whether or not earlier ones are
// done: a system that falls behind makes its events wait, and the waiting is measured (no coordinated omission).
type OpenLoop struct {
	// Rate is in events/s, on average; Events is how many there are.
	Rate   float64
	Events int
	// Producers is how many commit at once. It bounds how far reality can keep to the schedule, so it is generous.
	Producers int
	Seed      uint64
	// Commit commits the n-th event, and gives the time when the commit had returned. An error ends the loop.
	Commit func(ctx context.Context, n int) (time.Time, error)
}

// Committed is one event's times.
type Committed struct {
	// Scheduled is when the schedule wanted the event, Done when its commit had returned.
	Scheduled, Done time.Time
}

// Run runs the loop and gives each event's times.
func (l OpenLoop) Run(ctx context.Context) ([]Committed, error) {
	times := make([]Committed, l.Events)
	began := time.Now().Add(50 * time.Millisecond) // The producers are up by then.
	for n, after := range l.schedule() {
		times[n].Scheduled = began.Add(after)
	}
	group, ctx := errgroup.WithContext(ctx)
	due := make(chan int, l.Events) // Never full: the dispatcher is never held up.
	group.Go(func() error {
		defer close(due)
		return dispatch(ctx, times, due)
	})
	for range l.Producers {
		group.Go(func() error {
			for n := range due {
				done, err := l.Commit(ctx, n)
				if err != nil {
					return fmt.Errorf("event %d: %w", n, err)
				}
				times[n].Done = done
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return times, nil
}

// schedule gives for each event how long after the beginning it is wanted: exponential gaps. Pure.
func (l OpenLoop) schedule() []time.Duration {
	random := rand.New(rand.NewPCG(l.Seed, 1))
	at := make([]time.Duration, l.Events)
	sum := 0.0
	for n := range at {
		sum += random.ExpFloat64() / l.Rate
		at[n] = time.Duration(sum * float64(time.Second))
	}
	return at
}

func dispatch(ctx context.Context, times []Committed, due chan<- int) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := range times {
		timer.Reset(time.Until(times[n].Scheduled))
		select {
		case <-timer.C:
			due <- n
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

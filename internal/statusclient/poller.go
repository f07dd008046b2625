package statusclient

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/util/workqueue"

	"github.com/relayops/relayops/internal/conditions"
)

const (
	// SteadyInterval is the time between two calls to a daemon that works and tells the same, ± a fifth.
	SteadyInterval = 30 * time.Second
	// RestlessInterval is the time between two calls to any other.
	RestlessInterval = 15 * time.Second
	// KeptFor is how long the last answer of a daemon stands for one that does not answer.
	KeptFor = time.Minute

	pollers = 16
)

// Poller asks the daemons that it was told of, again and again. It is safe for concurrent use.
type Poller struct {
	ask     func(context.Context, Target) (conditions.Daemon, error)
	now     func() time.Time
	jitter  func() float64
	queue   workqueue.TypedDelayingInterface[Target]
	changed func(Target)

	mu    sync.Mutex
	known map[Target]*memory
}

// memory is what is known of one daemon.
type memory struct {
	epoch string
	// told is what Latest gives.
	told conditions.Daemon
	// answeredAt is when the daemon last answered; zero: never.
	answeredAt time.Time
}

// NewPoller asks with ask, such as [Client.Ask], once [Poller.Start] runs, and calls changed for a daemon whose answer
// means something else than the one before. changed may block.
func NewPoller(ask func(context.Context, Target) (conditions.Daemon, error), changed func(Target)) *Poller {
	return &Poller{
		ask: ask, changed: changed, now: time.Now, jitter: rand.Float64, known: map[Target]*memory{},
		queue: workqueue.NewTypedDelayingQueue[Target](),
	}
}

// Latest is what the daemon told last; the zero value: it was not asked yet. It is asked from now on, and at once
// whenever epoch is another one than in the call before: an epoch stands for a state of the pods.
func (p *Poller) Latest(target Target, epoch string) conditions.Daemon {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.known[target]
	if m == nil {
		m = &memory{}
		p.known[target] = m
	} else if m.epoch == epoch {
		return m.told
	}
	m.epoch = epoch
	p.queue.Add(target)
	return m.told
}

// Forget ends asking the daemon.
func (p *Poller) Forget(target Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, target)
}

// Start asks until ctx ends.
func (p *Poller) Start(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.queue.ShutDown)
	defer stop()
	var group errgroup.Group
	for range pollers {
		group.Go(func() error {
			for p.next(ctx) {
			}
			return nil
		})
	}
	return group.Wait()
}

// NeedLeaderElection says that only the leader asks.
func (p *Poller) NeedLeaderElection() bool { return true }

// next asks one daemon; false: the poller stops.
func (p *Poller) next(ctx context.Context) bool {
	target, stopped := p.queue.Get()
	if stopped {
		return false
	}
	defer p.queue.Done(target)
	if !p.follows(target) {
		return true
	}
	told, err := p.ask(ctx, target)
	if ctx.Err() != nil {
		return true
	}
	changed, wait, follows := p.remember(target, told, err)
	if changed {
		p.changed(target)
	}
	if follows {
		p.queue.AddAfter(target, wait)
	}
	return true
}

func (p *Poller) follows(target Target) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[target] != nil
}

// remember takes an answer in. It tells whether it means something new, and how long to wait until the next call.
func (p *Poller) remember(target Target, told conditions.Daemon, err error,
) (changed bool, wait time.Duration, follows bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.known[target]
	if m == nil {
		return false, 0, false
	}
	before := m.told
	switch now := p.now(); {
	case err == nil:
		m.told, m.answeredAt = told, now
	case m.answeredAt.IsZero() || now.Sub(m.answeredAt) >= KeptFor:
		m.told = conditions.Daemon{Problem: err.Error()}
	}
	changed = m.told != before
	wait = RestlessInterval
	if err == nil && !changed && told.Reason == "" {
		wait = SteadyInterval
	}
	return changed, time.Duration(float64(wait) * (0.8 + 0.4*p.jitter())), true
}

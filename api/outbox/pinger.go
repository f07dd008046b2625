package outbox

import (
	"context"
	"sync"
	"time"
)

const (
	// pingTimeout bounds one ping, so that a database that does not answer holds nothing up.
	pingTimeout = 5 * time.Second
	// pingPause is the least time between two pings: at most so many a second, however many commits there are.
	pingPause = 10 * time.Millisecond
)

// Pinger wakes the relays up after commits, in a goroutine of its own. It makes one ping of all that are asked for
// while one is under way, and never makes a caller wait.
//
//	         Ping()                 done
//	idle ──────────────► pinging ──────────► pausing ──► idle
//	                       │  ▲ Ping() here: one more follows, however many ask
//	                       └──┘
type Pinger struct {
	ping   func(ctx context.Context) error
	failed func(err error)
	asked  chan struct{}
	cancel context.CancelFunc
	ended  chan struct{}
	once   sync.Once
}

// PingerOption changes a [Pinger].
type PingerOption func(*Pinger)

// OnPingError is called, from the Pinger's goroutine, with the error of each ping that failed. Without it errors are
// dropped, which is safe: polling alone is enough.
func OnPingError(failed func(err error)) PingerOption {
	return func(p *Pinger) { p.failed = failed }
}

// NewPinger makes a Pinger that pings through db, such as a *pgxpool.Pool. [Pinger.Close] ends it.
func NewPinger(db Executor, options ...PingerOption) *Pinger {
	return newPinger(func(ctx context.Context) error { return Ping(ctx, db) }, options)
}

// NewPingerSQL makes a Pinger that pings through db, such as a *sql.DB. [Pinger.Close] ends it.
func NewPingerSQL(db ExecutorSQL, options ...PingerOption) *Pinger {
	return newPinger(func(ctx context.Context) error { return PingSQL(ctx, db) }, options)
}

func newPinger(ping func(ctx context.Context) error, options []PingerOption) *Pinger {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:gosec // Close calls it.
	p := &Pinger{
		ping: ping, failed: func(error) {}, asked: make(chan struct{}, 1), cancel: cancel, ended: make(chan struct{}),
	}
	for _, option := range options {
		option(p)
	}
	go p.run(ctx)
	return p
}

// Ping asks for a ping, to begin after this call, and returns at once. Call it after the commit. After Close it does
// nothing.
func (p *Pinger) Ping() {
	select {
	case p.asked <- struct{}{}:
	default: // One is asked for and has not begun: it serves this caller too.
	}
}

// Close ends the Pinger and waits for its goroutine; a ping under way is cut off.
func (p *Pinger) Close() {
	p.once.Do(p.cancel)
	<-p.ended
}

func (p *Pinger) run(ctx context.Context) {
	defer close(p.ended)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.asked:
		}
		if err := p.pingOnce(ctx); err != nil && ctx.Err() == nil {
			p.failed(err)
		}
		pause.Reset(pingPause)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

func (p *Pinger) pingOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return p.ping(ctx)
}

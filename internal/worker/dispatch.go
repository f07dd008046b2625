package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/connect"
	"github.com/relayops/relayops/internal/execution"
)

const (
	// shortestPull bounds how short a pull that waits may be.
	shortestPull = 20 * time.Millisecond
	// probeWait is the pause between two questions whether the database is back.
	probeWait = 500 * time.Millisecond
	// brokerWait is how long slots stay unused at a time while the broker is away.
	brokerWait = 200 * time.Millisecond
)

// dispatcher gives free slots to due executions and to messages. Only its own goroutine uses it, but for messages.
type dispatcher struct {
	*Worker
	nextPoll time.Time
	due      bool
	turn     bool
	// messages says that the last pull found as many as it asked for.
	messages atomic.Bool
}

// dispatch runs until ctx ends. Whatever it began goes on after that.
func (w *Worker) dispatch(ctx context.Context) {
	d := &dispatcher{Worker: w}
	for ctx.Err() == nil {
		if !w.awaitDatabase(ctx) {
			return
		}
		if free := w.slots.takeAll(ctx); free > 0 {
			w.slots.release(d.round(ctx, free))
		}
	}
}

// awaitDatabase returns once the database answers; false: ctx has ended.
func (w *Worker) awaitDatabase(ctx context.Context) bool {
	for {
		away, changed := w.state.databaseAway()
		if !away {
			return ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		case <-time.After(probeWait):
			// Nothing else may be asking: the answer comes through observe.
			_ = w.ledger.Probe(ctx)
		}
	}
}

// round gives out free slots, and returns how many are left over.
func (d *dispatcher) round(ctx context.Context, free int) (left int) {
	now := d.now()
	poll := d.due || !now.Before(d.nextPoll)
	due, messages := divide(free, poll, demand{due: d.due, messages: d.messages.Load()}, d.turn)
	d.turn = !d.turn
	if due > 0 {
		claimed, err := d.takeDue(ctx, due)
		if err != nil {
			return free
		}
		d.due = claimed == due
		d.nextPoll = now.Add(d.spec.DuePollInterval.Std())
		messages += due - claimed
	}
	switch {
	case messages == 0:
		return 0
	case !d.nc.IsConnected() || d.topology.Load() == nil:
		d.messages.Store(false)
		if !d.due {
			pause(ctx, min(brokerWait, max(d.nextPoll.Sub(now), shortestPull)))
		}
		return messages
	case d.due:
		// Others wait for these slots: take what is there, at once.
		return d.pull(ctx, messages, 0)
	default:
		wait := max(d.nextPoll.Sub(now), shortestPull)
		d.work.Go(func() { d.slots.release(d.pull(ctx, messages, wait)) })
		return 0
	}
}

// takeDue begins at most n executions that are due.
func (d *dispatcher) takeDue(ctx context.Context, n int) (int, error) {
	claims, err := d.ledger.ClaimDue(ctx, n, d.mayTakeOver())
	if err != nil {
		d.log.Debug("due executions not claimed", "error", err)
		pause(ctx, shortestPull)
		return 0, err
	}
	for i := range claims {
		claim := &claims[i]
		d.work.Go(func() {
			defer d.slots.release(1)
			defer d.contain("due execution")
			if claim.Verdict == execution.DeadlinePassed {
				d.metrics.executions.WithLabelValues(outcomes[execution.Cancelled]).Inc()
				return
			}
			log := d.log.With("event", claim.EventID, "org", claim.OrgID)
			d.attempt(ctx, claim, nil, log)
		})
	}
	return len(claims), nil
}

// pull asks for at most n messages, waiting for the first ones as long as wait, and begins them. It returns how many
// slots are left over, when the broker has said that no more come.
func (d *dispatcher) pull(ctx context.Context, n int, wait time.Duration) (left int) {
	consumer := d.topology.Load().consumer
	var batch jetstream.MessageBatch
	var err error
	if wait > 0 {
		batch, err = consumer.Fetch(n, jetstream.FetchMaxWait(wait))
	} else {
		batch, err = consumer.FetchNoWait(n)
	}
	if err != nil {
		d.pullFailed(ctx, err)
		return n
	}
	left = n
	for msg := range batch.Messages() {
		left--
		d.work.Go(func() {
			defer d.slots.release(1)
			if ctx.Err() != nil {
				// Asked for before the stop, and nothing of it has begun.
				d.settle(msg, settlement{how: nak})
				return
			}
			d.handle(ctx, msg)
		})
	}
	d.messages.Store(left == 0)
	if err := batch.Error(); err != nil {
		d.pullFailed(ctx, err)
	}
	return left
}

// pullFailed has the consumer looked after where that may help, and slows down.
func (d *dispatcher) pullFailed(ctx context.Context, err error) {
	d.messages.Store(false)
	d.log.Debug("pull failed", "error", connect.Explain(err))
	if lostConsumer(err) {
		d.lookAfterConsumer()
	}
	pause(ctx, brokerWait)
}

// lostConsumer reports whether an error of a pull may mean that the consumer is not there.
func lostConsumer(err error) bool {
	return errors.Is(err, jetstream.ErrConsumerDeleted) || errors.Is(err, jetstream.ErrConsumerNotFound) ||
		errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// mayTakeOver reports whether leases that ran out may be taken over: not before their holders had a chance to renew
// them, after an outage of the database that they shared with us.
func (w *Worker) mayTakeOver() bool { return w.state.databaseUpFor() >= w.heartbeat() }

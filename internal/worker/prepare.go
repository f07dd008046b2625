package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/connect"
	"github.com/relayops/relayops/internal/execution"
	"github.com/relayops/relayops/internal/stream"
)

const (
	// askTimeout bounds each question to the broker.
	askTimeout = 5 * time.Second
	// schemaTimeout bounds the check of the schema, which may bring it up to date or wait for somebody who does.
	schemaTimeout = time.Minute
	// firstPause and longestPause bound the wait before a worker that is not ready tries again.
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
	// ensureEvery is how often the consumer is looked after while all is well.
	ensureEvery = time.Minute
)

// topology is what a worker works on, as it was ensured last.
type topology struct {
	subscription execution.Subscription
	consumer     jetstream.Consumer
}

// prepare tries until everything that ensure brings about is there. False: ctx has ended.
// It tries at once when status tells that the broker is there.
func (w *Worker) prepare(ctx context.Context, ensure func(context.Context) (Reason, error), status <-chan nats.Status,
) bool {
	wait := &backoff.ExponentialBackOff{
		InitialInterval: firstPause, MaxInterval: longestPause, Multiplier: 2, RandomizationFactor: 0.5,
	}
	wait.Reset()
	logged := Reason("")
	for ctx.Err() == nil {
		reason, err := ensure(ctx)
		if reason == "" {
			return true
		}
		w.state.set(reason, err)
		if reason != logged && ctx.Err() == nil {
			logged = reason
			w.log.Warn("worker not ready", "reason", reason, "error", connect.Explain(err))
		}
		awaitBroker(ctx, wait.NextBackOff(), status)
	}
	return false
}

// awaitBroker waits, until the broker is connected at the longest.
func awaitBroker(ctx context.Context, wait time.Duration, status <-chan nats.Status) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case changed := <-status:
			if changed == nats.CONNECTED {
				return
			}
		}
	}
}

// ensureLedger is all that due executions need: the schema, and the revision that new ones begin with.
func (w *Worker) ensureLedger(ctx context.Context) (Reason, error) {
	if reason, err := w.ensureSchema(ctx); reason != "" {
		return reason, err
	}
	if err := w.ledger.RecordRevision(ctx, w.spec.Revision, w.spec.Definition); err != nil {
		return databaseReason(err), err
	}
	return "", nil
}

// ensureTopology is all that messages need: subscription, stream and consumer. The reason is empty when all is well.
func (w *Worker) ensureTopology(ctx context.Context) (Reason, error) {
	if !w.nc.IsConnected() {
		return w.brokerAway()
	}
	subscription, err := w.ensureSubscription(ctx)
	if err == nil {
		subscription, err = w.followStream(ctx, subscription)
	}
	switch {
	case errors.Is(err, execution.ErrUnavailable), errors.Is(err, execution.ErrRefused):
		return databaseReason(err), err
	case err != nil:
		return brokerReason(err), err
	}
	if err := w.ensureConsumer(ctx, subscription); err != nil {
		return brokerReason(err), err
	}
	return "", nil
}

func (w *Worker) ensureSchema(ctx context.Context) (Reason, error) {
	if w.check == nil {
		return "", nil
	}
	asking, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	if err := w.pool.Ping(asking); err != nil {
		w.state.observe(err)
		return databaseReason(err), err
	}
	w.state.observe(nil)
	if err := w.check(asking, w.pool); err != nil {
		if reason := databaseReason(err); reason == ReasonDatabaseUnauthorized {
			return reason, err
		}
		return ReasonSchemaNotReady, err
	}
	return "", nil
}

func (w *Worker) brokerAway() (Reason, error) {
	err := w.nc.LastError()
	if err == nil {
		err = nats.ErrConnectionReconnecting
	}
	return brokerReason(err), err
}

// ensureSubscription makes the subscription, once and for all, or reads it.
func (w *Worker) ensureSubscription(ctx context.Context) (execution.Subscription, error) {
	found, err := w.ledger.Subscription(ctx)
	if err != nil {
		return execution.Subscription{}, err
	}
	if found != nil && w.topology.Load() != nil {
		return *found, nil
	}
	wanted := execution.NewSubscription{
		Trigger: w.spec.Subscription.Trigger, Orgs: w.spec.Subscription.Orgs,
		Start: execution.Start(w.spec.Subscription.StartFrom), Stream: w.spec.Stream.Name,
	}
	if found == nil {
		if wanted.Start == execution.FromTime && w.spec.Subscription.StartTime != nil {
			wanted.StartTime = *w.spec.Subscription.StartTime
		}
		// Read before the position: an event that is inserted later is published later.
		if err := w.findStart(ctx, &wanted); err != nil {
			return execution.Subscription{}, err
		}
	}
	made, err := w.ledger.Register(ctx, wanted)
	if err != nil {
		return execution.Subscription{}, err
	}
	w.log.Info("subscribed", "new", made.Made, "fromPosition", made.FromPosition, "startSeq", made.StartSeq)
	return made, nil
}

// followStream begins the subscription anew if the stream is another one than it was, before anything is made on it.
func (w *Worker) followStream(ctx context.Context, subscription execution.Subscription,
) (execution.Subscription, error) {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	handle, err := w.js.Stream(asking, w.spec.Stream.Name)
	if err != nil {
		return subscription, fmt.Errorf("read stream %s: %w", w.spec.Stream.Name, err)
	}
	info := handle.CachedInfo()
	if sameStream(&subscription, info) {
		return subscription, nil
	}
	rebased, err := w.ledger.Rebase(ctx, w.spec.Stream.Name, info.Created, info.State.LastSeq)
	if err != nil {
		return subscription, err
	}
	if rebased == nil { // Another worker was faster.
		rebased, err = w.ledger.Subscription(ctx)
		if err == nil && rebased == nil {
			err = fmt.Errorf("read the subscription: %w: it was deleted at once", execution.ErrUnavailable)
		}
		if err != nil {
			return subscription, err
		}
	}
	w.log.Warn("the stream was made anew or restored: the subscription begins at its first message",
		"stream", w.spec.Stream.Name, "made", info.Created, "before", subscription.Incarnation)
	return *rebased, nil
}

// sameStream reports whether the subscription's sequences count in the stream as it is now.
func sameStream(subscription *execution.Subscription, info *jetstream.StreamInfo) bool {
	return subscription.Stream == info.Config.Name &&
		subscription.Incarnation.Equal(info.Created.Truncate(time.Microsecond)) &&
		subscription.SweptSeq <= info.State.LastSeq
}

// clockMargin is how much earlier than a start time the stream is searched from: the time is the database's, which
// dates the events, and the messages are dated by the broker, whose clock may be behind. What is too early is dropped
// by its position. A mapped table without positions has nothing to tell it by: its subscription may begin up to
// clockMargin too early.
const clockMargin = 5 * time.Minute

// findStart finds where the consumer of a new subscription begins: at or before its first event.
func (w *Worker) findStart(ctx context.Context, wanted *execution.NewSubscription) error {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	handle, err := w.js.Stream(asking, wanted.Stream)
	if err != nil {
		return fmt.Errorf("read stream %s: %w", wanted.Stream, err)
	}
	info := handle.CachedInfo()
	wanted.Incarnation = info.Created
	switch wanted.Start {
	case execution.FromBeginning:
		wanted.StartSeq = max(info.State.FirstSeq, 1)
	case execution.FromTime:
		// Published after it was inserted: by one clock, its message is no older than it.
		wanted.StartSeq, err = firstSince(asking, handle, wanted.StartTime.Add(-clockMargin))
	default:
		wanted.StartSeq = info.State.LastSeq + 1
	}
	return err
}

// firstSince is the sequence of the first message that is no older than a time, or the next sequence.
func firstSince(ctx context.Context, handle jetstream.Stream, since time.Time) (uint64, error) {
	low, high := max(handle.CachedInfo().State.FirstSeq, 1), handle.CachedInfo().State.LastSeq+1
	for low < high {
		middle := low + (high-low)/2
		// The next message that is there: some in between may be deleted.
		raw, err := handle.GetMsg(ctx, middle, jetstream.WithGetMsgSubject(">"))
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			high = middle
		case err != nil:
			return 0, fmt.Errorf("search the stream by time: %w", err)
		case raw.Time.Before(since):
			low = raw.Sequence + 1
		default:
			high = middle
		}
	}
	return low, nil
}

// ensureConsumer brings the pipeline's consumer to what is wanted.
func (w *Worker) ensureConsumer(ctx context.Context, subscription execution.Subscription) error {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	// What is swept is accounted for, so a consumer that is made anew need not begin before it.
	start := max(subscription.StartSeq, subscription.SweptSeq+1)
	state, err := stream.EnsureConsumer(asking, w.js, stream.Consumer{
		Stream: w.spec.Stream.Name, Name: w.spec.Consumer, PipelineKey: w.spec.PipelineKey,
		FilterSubjects: w.filterSubjects(), AckWait: w.spec.LeaseDuration.Std(), MaxDeliver: w.spec.MaxDeliver,
		MaxAckPending: w.maxAckPending(), StartSequence: start,
	})
	if err != nil {
		return err
	}
	if state.StartReset {
		// Made anew since followStream looked: the next look begins the subscription anew.
		return fmt.Errorf("stream %s was made anew", w.spec.Stream.Name)
	}
	if state.Applied != stream.Unchanged {
		w.log.Info("consumer ensured", "consumer", w.spec.Consumer, "applied", state.Applied, "changes", state.Changes)
	}
	w.topology.Store(&topology{subscription: subscription, consumer: state.Consumer})
	return nil
}

// maxAckPending leaves room for two generations of workers (a rolling update), each with all its slots in use.
func (w *Worker) maxAckPending() int { return 2 * max(w.spec.Replicas, 1) * w.spec.Concurrency }

// filterSubjects are the subjects of the subscription's event types, of each of its orgs or of all: each once, because
// the broker refuses filters that overlap. The consumer and the sweep have the same ones.
func (w *Worker) filterSubjects() []string {
	orgs := w.spec.Subscription.Orgs
	if len(orgs) == 0 {
		orgs = []string{""}
	}
	var subjects []string
	for _, org := range orgs {
		for _, eventType := range w.spec.Subscription.EventTypes {
			subjects = append(subjects, event.FilterSubject(w.spec.Stream.SubjectPrefix, org, eventType))
		}
	}
	slices.Sort(subjects)
	return slices.Compact(subjects)
}

// lookAfterConsumer has the keeper ensure the consumer soon.
func (w *Worker) lookAfterConsumer() {
	select {
	case w.ensureSoon <- struct{}{}:
	default: // It will, already.
	}
}

// keepReady ensures subscription and consumer, at first, from time to time, when the broker is back, and when a pull
// has missed the consumer, until ctx ends.
func (w *Worker) keepReady(ctx context.Context) {
	w.lookAfterConsumer()
	ticker := time.NewTicker(ensureEvery)
	defer ticker.Stop()
	status := w.nc.StatusChanged(nats.CONNECTED, nats.RECONNECTING)
	defer w.nc.RemoveStatusListener(status)
	for {
		select {
		case <-ctx.Done():
			return
		case changed := <-status:
			if changed == nats.RECONNECTING {
				w.state.set(w.brokerAway())
				continue
			}
		case <-ticker.C:
		case <-w.ensureSoon:
		}
		if !w.prepare(ctx, w.ensureTopology, status) {
			return
		}
		if reason, _, _ := w.state.get(); reason != "" {
			w.log.Info("worker ready")
		}
		w.state.set("", nil)
	}
}

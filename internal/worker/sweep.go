package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/connect"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/execution"
)

const (
	// sweepChunk is how many messages are compared with the ledger at once.
	sweepChunk = 500
	// sweepTime bounds one sweep; the next one goes on where it ended.
	sweepTime = time.Minute
	// advisoriesWaiting bounds the advisories that wait to be handled; the sweep finds what is dropped.
	advisoriesWaiting = 256
)

// sweepLoop accounts for the messages that the broker gave up on: those that an advisory names at once, all others in
// every sweep interval. It runs until ctx ends.
func (w *Worker) sweepLoop(ctx context.Context) {
	given := make(chan uint64, advisoriesWaiting)
	subject := fmt.Sprintf("$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.%s.%s", w.spec.Stream.Name, w.spec.Consumer)
	// A queue group: one of the pipeline's workers gets each.
	advisories, err := w.nc.QueueSubscribe(subject, "relayops-"+w.spec.Consumer, func(msg *nats.Msg) {
		var advisory struct {
			StreamSeq uint64 `json:"stream_seq"`
		}
		if json.Unmarshal(msg.Data, &advisory) != nil || advisory.StreamSeq == 0 {
			return
		}
		select {
		case given <- advisory.StreamSeq:
		default:
		}
	})
	if err != nil {
		w.log.Warn("advisories not subscribed to: the sweep alone finds what the broker gives up on", "error", err)
	} else {
		defer func() { _ = advisories.Unsubscribe() }()
	}
	ticker := time.NewTicker(w.spec.SweepInterval.Std())
	defer ticker.Stop()
	level := slog.LevelWarn
	for {
		select {
		case <-ctx.Done():
			return
		case seq := <-given:
			err = w.accountFor(ctx, seq)
		case <-ticker.C:
			if away, _ := w.state.databaseAway(); away || !w.nc.IsConnected() || w.topology.Load() == nil {
				continue
			}
			err = errors.Join(w.sweep(ctx), w.gauge(ctx))
		}
		switch {
		case err == nil:
			level = slog.LevelWarn
		case ctx.Err() == nil:
			// One warning for a row of failures.
			w.metrics.sweepFailures.Inc()
			w.log.Log(ctx, level, "sweep not finished", "error", connect.Explain(err))
			level = slog.LevelDebug
		}
	}
}

// gauge reads what the gauges show.
func (w *Worker) gauge(ctx context.Context) error {
	due, err := w.ledger.CountDue(ctx)
	if err != nil {
		return err
	}
	w.metrics.due.Set(float64(due))
	info, err := w.consumerInfo(ctx)
	if err != nil {
		return err
	}
	w.metrics.lag.Set(float64(info.NumPending))
	w.metrics.unacked.Set(float64(info.NumAckPending))
	return nil
}

func (w *Worker) consumerInfo(ctx context.Context) (*jetstream.ConsumerInfo, error) {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	info, err := w.topology.Load().consumer.Info(asking)
	if err != nil && lostConsumer(err) {
		w.lookAfterConsumer()
	}
	return info, err
}

// accountFor settles one message that the broker delivers no more.
func (w *Worker) accountFor(ctx context.Context, seq uint64) error {
	known := w.topology.Load()
	if known == nil {
		return nil // The sweep will find it.
	}
	raw, err := w.readMessage(ctx, w.spec.Stream.Name, seq)
	if err != nil {
		return err
	}
	seen := inbound{
		stream: w.spec.Stream.Name, seq: seq, storedAt: raw.Time, subject: raw.Subject, header: raw.Header,
	}
	return w.account(ctx, known.subscription, []inbound{seen})
}

// sweep compares the stream with the ledger, from where the last sweep ended up to where the broker delivers nothing
// more, or has had long enough to. One of the pipeline's workers does it in each interval.
//
// The broker does not tell what it gave up on: its ack floor may stay below such a message as long as later ones are
// in work. But a message that was delivered long ago and is in nobody's record may be put into the ledger whatever the
// broker still does with it: delivered once more, it is found there.
func (w *Worker) sweep(ctx context.Context) error {
	subscription, err := w.ledger.BeginSweep(ctx, w.spec.SweepInterval.Std()*3/4)
	if err != nil || subscription == nil {
		return err
	}
	info, err := w.consumerInfo(ctx)
	if err != nil {
		return err
	}
	reach := reachOf(info, w.now().Add(-patience*w.spec.LeaseDuration.Std()))
	last, err := w.streamEnd(ctx, subscription)
	if err != nil {
		return err
	}
	// A consumer may begin beyond the stream's end. What is stored there later is not read yet.
	reach.last = min(reach.last, last)
	if reach.last > subscription.SweptSeq {
		err = w.sweepTo(ctx, subscription, reach)
	}
	if err == nil {
		w.metrics.swept.Set(float64(w.now().UnixMilli()) / 1000)
	}
	return err
}

// streamEnd is the stream's last sequence; an error when it is not the stream that the subscription is about.
func (w *Worker) streamEnd(ctx context.Context, subscription *execution.Subscription) (uint64, error) {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	handle, err := w.js.Stream(asking, w.spec.Stream.Name)
	if err != nil {
		return 0, fmt.Errorf("read stream %s: %w", w.spec.Stream.Name, err)
	}
	if !sameStream(subscription, handle.CachedInfo()) {
		w.lookAfterConsumer()
		return 0, fmt.Errorf("stream %s was made anew", w.spec.Stream.Name)
	}
	return handle.CachedInfo().State.LastSeq, nil
}

func (w *Worker) sweepTo(ctx context.Context, subscription *execution.Subscription, reach sweepReach) error {
	return w.readStream(ctx, subscription.SweptSeq+1, reach, func(chunk []inbound, upTo uint64) error {
		if err := w.account(ctx, *subscription, chunk); err != nil {
			return err
		}
		moved, err := w.ledger.Swept(ctx, subscription, upTo)
		if err == nil && !moved {
			err = errors.New("somebody else sweeps")
		}
		subscription.SweptSeq = upTo
		return err
	})
}

// patience is for how many lengths of a lease a message may be in work without a record.
const patience = 4

// sweepReach is how far a sweep may go: up to settled, and further to last through messages from before the time.
type sweepReach struct {
	settled, last uint64
	before        time.Time
}

func reachOf(info *jetstream.ConsumerInfo, before time.Time) sweepReach {
	reach := sweepReach{settled: info.AckFloor.Stream, last: info.Delivered.Stream, before: before}
	if info.NumAckPending == 0 {
		reach.settled = reach.last
	}
	return reach
}

func (r sweepReach) holds(meta *jetstream.MsgMetadata) bool {
	seq := meta.Sequence.Stream
	return seq <= r.settled || seq <= r.last && meta.Timestamp.Before(r.before)
}

// readStream reads the headers of the consumer's messages from first on as far as reach holds, and gives them in
// chunks, each with the sequence up to which everything is seen then.
func (w *Worker) readStream(ctx context.Context, first uint64, reach sweepReach,
	see func(chunk []inbound, upTo uint64) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	fail := func(err error) error { return fmt.Errorf("read stream %s: %w", w.spec.Stream.Name, err) }
	reader, err := w.js.OrderedConsumer(ctx, w.spec.Stream.Name, jetstream.OrderedConsumerConfig{
		FilterSubjects: w.filterSubjects(), DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: first,
		HeadersOnly: true, InactiveThreshold: askTimeout,
	})
	if err != nil {
		return fail(err)
	}
	left := reader.CachedInfo().NumPending
	messages, err := reader.Messages(jetstream.PullMaxMessages(sweepChunk))
	if err != nil {
		return fail(err)
	}
	defer messages.Stop()
	var chunk []inbound
	for left > 0 {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fail(err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return fail(err)
		}
		if !reach.holds(meta) {
			return see(chunk, min(meta.Sequence.Stream-1, reach.last))
		}
		chunk = append(chunk, inbound{
			stream: meta.Stream, seq: meta.Sequence.Stream, storedAt: meta.Timestamp, subject: msg.Subject(),
			header: msg.Headers(),
		})
		if left = meta.NumPending; len(chunk) == sweepChunk {
			if err := see(chunk, meta.Sequence.Stream); err != nil {
				return err
			}
			chunk = nil
		}
	}
	return see(chunk, reach.last)
}

// account makes sure that each message has an execution or a dead letter, unless it is none of this pipeline's.
func (w *Worker) account(ctx context.Context, subscription execution.Subscription, messages []inbound) error {
	type pending struct {
		place execution.Message
		event *event.Delivery
	}
	prefix := w.spec.Stream.SubjectPrefix
	var ours []pending
	var keys []execution.Key
	for i := range messages {
		place := messages[i].message(prefix)
		d, err := decodeHeaders(prefix, messages[i].subject, messages[i].header)
		if err != nil {
			if err := w.ledger.DeadLetterMessage(ctx, place, engine.CodeSchemaInvalid, nil); err != nil {
				return err
			}
			continue
		}
		if relevanceOf(&w.spec, subscription, d) == relevant {
			ours = append(ours, pending{place, d})
			keys = append(keys, execution.KeyOf(d))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	recorded, err := w.ledger.Recorded(ctx, keys)
	if err != nil {
		return err
	}
	for _, p := range ours {
		hash, known := recorded[execution.KeyOf(p.event)]
		switch {
		case !known:
			err = w.recoverMessage(ctx, p.place)
		case hash != p.event.PayloadSHA256:
			err = w.ledger.DeadLetterMessage(ctx, p.place, engine.CodePayloadConflict, p.event)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recoverMessage puts an event that was never claimed into the ledger. A message that is gone meanwhile was dropped by
// the stream's own limits: nothing is left of it here.
func (w *Worker) recoverMessage(ctx context.Context, place execution.Message) error {
	raw, err := w.readMessage(ctx, place.Stream, place.Seq)
	if errors.Is(err, execution.ErrNoEvent) {
		w.log.Warn("a message without a record is gone from the stream", "stream", place.Stream, "seq", place.Seq)
		return nil
	}
	if err != nil {
		return err
	}
	d, err := decode(w.spec.Stream.SubjectPrefix, raw.Subject, raw.Header, raw.Data)
	if err != nil {
		return w.ledger.DeadLetterMessage(ctx, place, engine.CodeSchemaInvalid, nil)
	}
	recovered, err := w.ledger.Recover(ctx, execution.Request{
		Delivery: d, Revision: w.spec.Revision, Stream: place.Stream, StreamSeq: place.Seq,
	})
	if errors.Is(err, execution.ErrRefused) {
		return w.ledger.DeadLetterMessage(ctx, place, engine.CodeSchemaInvalid, d)
	}
	if recovered {
		w.metrics.recovered.Inc()
		w.log.Warn("an event that no worker took up is put into the ledger", "event", d.ID, "org", d.OrgID,
			"stream", place.Stream, "seq", place.Seq)
	}
	return err
}

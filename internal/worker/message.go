package worker

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/crashpoint"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/execution"
)

// handle takes one message to its settlement. It holds a slot.
func (w *Worker) handle(ctx context.Context, msg jetstream.Msg) {
	w.hand.takeMessage(msg)
	defer w.hand.dropMessage(msg)
	// A panic of ours leaves message and lease to be taken over: the deliveries and the attempts bound how often.
	s := settlement{how: leave}
	defer func() { w.settle(msg, s) }()
	defer w.contain("message")
	s = w.process(ctx, msg)
}

// process gives the settlement of a message.
func (w *Worker) process(ctx context.Context, msg jetstream.Msg) settlement {
	meta, err := msg.Metadata()
	if err != nil {
		w.log.Error("message without metadata", "error", err)
		return settlement{how: leave}
	}
	in := inbound{
		stream: meta.Stream, seq: meta.Sequence.Stream, storedAt: meta.Timestamp, subject: msg.Subject(),
	}
	place := in.message(w.spec.Stream.SubjectPrefix)
	d, err := decode(w.spec.Stream.SubjectPrefix, msg.Subject(), msg.Headers(), msg.Data())
	if err != nil {
		w.log.Debug("message not decoded", "stream", place.Stream, "seq", place.Seq, "error", err)
		return w.deadLetterMessage(ctx, place, engine.CodeSchemaInvalid, nil)
	}
	log := w.log.With("event", d.ID, "org", d.OrgID, "seq", place.Seq)
	if r := relevanceOf(&w.spec, w.topology.Load().subscription, d); r != relevant {
		log.Debug("message passed over", "because", r)
		return settlement{how: ack}
	}
	claim, err := w.ledger.Claim(ctx, execution.Request{
		Delivery: d, Revision: w.spec.Revision, Stream: place.Stream, StreamSeq: place.Seq, TakeOver: w.mayTakeOver(),
	})
	switch {
	case errors.Is(err, execution.ErrRefused):
		log.Debug("claim refused", "error", err)
		return w.deadLetterMessage(ctx, place, engine.CodeSchemaInvalid, d)
	case err != nil:
		log.Debug("claim not answered", "error", err)
		return w.handBackMessage()
	}
	if claim.Verdict != execution.Claimed && claim.Verdict != execution.AttemptsExhausted {
		log.Debug("message not claimed", "because", claim.Verdict)
		return w.settleUnclaimed(ctx, place, d, &claim)
	}
	state := w.attempt(ctx, &claim, d, log)
	switch state {
	case "":
	case execution.DeadLettered:
		crashpoint.Here(crashpoint.AfterDeadLetterBeforeTerm)
	default:
		crashpoint.Here(crashpoint.AfterCommitBeforeAck)
	}
	return settleEnded(state)
}

func (w *Worker) settleUnclaimed(ctx context.Context, place execution.Message, d *event.Delivery,
	claim *execution.Claim,
) settlement {
	if claim.Verdict == execution.DeadlinePassed {
		w.metrics.executions.WithLabelValues(outcomes[execution.Cancelled]).Inc()
	}
	s, conflict := settleUnclaimed(claim)
	if conflict {
		return w.deadLetterMessage(ctx, place, engine.CodePayloadConflict, d)
	}
	return s
}

// deadLetterMessage writes the dead letter of a message without an execution, and then terminates the message.
func (w *Worker) deadLetterMessage(ctx context.Context, place execution.Message, code engine.Code,
	about *event.Delivery,
) settlement {
	if err := w.ledger.DeadLetterMessage(ctx, place, code, about); err != nil {
		w.log.Debug("dead letter not written", "seq", place.Seq, "error", err)
		return w.handBackMessage()
	}
	w.metrics.letters.WithLabelValues(string(code)).Inc()
	attributes := []any{"stream", place.Stream, "seq", place.Seq, "code", code}
	if about != nil {
		attributes = append(attributes, "event", about.ID, "org", about.OrgID)
	}
	w.log.Warn("dead letter", attributes...)
	crashpoint.Here(crashpoint.AfterDeadLetterBeforeTerm)
	return settlement{how: term}
}

// handBackMessage gives a message back of which nothing became: at once when this worker stops, else to whoever has the
// database in a few seconds.
func (w *Worker) handBackMessage() settlement {
	if w.stopping() {
		return settlement{how: nak}
	}
	return settlement{how: nak, delay: shortestNak + time.Duration(w.random()*float64(4*time.Second))}
}

// settle tells the broker. What does not get there is delivered again, and found in the ledger.
func (w *Worker) settle(msg jetstream.Msg, s settlement) {
	var err error
	switch s.how {
	case ack:
		err = msg.Ack()
	case term:
		err = msg.Term()
	case nak:
		if s.delay > 0 {
			err = msg.NakWithDelay(s.delay)
		} else {
			err = msg.Nak()
		}
	case leave:
	}
	w.metrics.messages.WithLabelValues(string(s.how)).Inc()
	if err != nil {
		w.log.Debug("message not settled", "as", s.how, "error", err)
	}
}

// contain keeps a panic of ours from ending the process. Its value may hold anything, so it is for debug logs.
func (w *Worker) contain(doing string) {
	if recovered := recover(); recovered != nil {
		w.log.Error("panic", "doing", doing, "stack", string(debug.Stack()))
		w.log.Debug("panic", slog.Any("value", recovered))
	}
}

package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/execution"
)

// delivered is an event in hand, with its payload.
type delivered struct {
	event *event.Delivery
	// stored: the outbox or the ledger has it, so that it need not be kept when the attempt ends.
	stored bool
}

// fetchPayload completes a delivery whose payload stayed in the outbox. Its errors are a [*engine.Failure] about this
// event, and execution.ErrUnavailable.
func (w *Worker) fetchPayload(ctx context.Context, d *event.Delivery) (delivered, error) {
	if d.PayloadRef == "" {
		return delivered{event: d}, nil
	}
	stored, err := w.ledger.Event(ctx, d.OrgID, d.ID)
	if err != nil {
		return delivered{}, storedFailure(err)
	}
	if stored.PayloadSHA256 != d.PayloadSHA256 {
		return delivered{}, engine.Permanent(engine.CodePayloadConflict, errors.New("the outbox holds another payload"))
	}
	complete := *d
	complete.Payload = stored.Payload
	return delivered{event: &complete, stored: true}, nil
}

// fetchEvent reads the event of an execution that is claimed from the ledger: where it is stored, else from the stream.
// Its errors are a [*engine.Failure] about this event, execution.ErrUnavailable and errBrokerAway.
func (w *Worker) fetchEvent(ctx context.Context, claim *execution.Claim) (delivered, error) {
	d, err := w.ledger.Event(ctx, claim.OrgID, claim.EventID)
	stored := true
	if errors.Is(err, execution.ErrNoEvent) && claim.StreamSeq > 0 {
		d, err = w.fetchMessage(ctx, claim)
		stored = false
	}
	if err != nil {
		return delivered{}, storedFailure(err)
	}
	if d.PayloadSHA256 != claim.PayloadSHA256 {
		return delivered{}, engine.Permanent(engine.CodePayloadConflict, errors.New("another payload is stored"))
	}
	return delivered{event: d, stored: stored}, nil
}

func storedFailure(err error) error {
	switch {
	case errors.Is(err, execution.ErrNoEvent):
		return engine.Permanent(engine.CodePayloadExpired, err)
	case errors.Is(err, event.ErrInvalid), errors.Is(err, execution.ErrRefused):
		return engine.Permanent(engine.CodeSchemaInvalid, err)
	default:
		return err
	}
}

// fetchMessage reads an execution's message from the stream, by its place. Another event there, or none, is
// execution.ErrNoEvent: the stream was made anew, or the message aged out.
func (w *Worker) fetchMessage(ctx context.Context, claim *execution.Claim) (*event.Delivery, error) {
	raw, err := w.readMessage(ctx, claim.Stream, claim.StreamSeq)
	if err != nil {
		return nil, err
	}
	d, err := decode(w.spec.Stream.SubjectPrefix, raw.Subject, raw.Header, raw.Data)
	if err != nil || d.OrgID != claim.OrgID || d.ID != claim.EventID || d.PayloadRef != "" {
		return nil, execution.ErrNoEvent
	}
	return d, nil
}

// readMessage reads one message. Its errors are execution.ErrNoEvent and errBrokerAway.
func (w *Worker) readMessage(ctx context.Context, stream string, seq uint64) (*jetstream.RawStreamMsg, error) {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	handle, err := w.js.Stream(asking, stream)
	if err == nil {
		var raw *jetstream.RawStreamMsg
		if raw, err = handle.GetMsg(asking, seq); err == nil {
			return raw, nil
		}
	}
	if errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, execution.ErrNoEvent
	}
	return nil, fmt.Errorf("%w: read message %d of stream %s: %w", errBrokerAway, seq, stream, err)
}

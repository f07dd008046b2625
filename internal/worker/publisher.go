package worker

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/stream"
)

// publisher is what the publish nodes of one attempt act through: JetStream, whose acknowledgement it waits for.
type publisher struct {
	js jetstream.JetStream
	// away ends the attempt, without counting it, when the broker cannot be reached: that is no fault of the event.
	away func()
}

// Publish implements engine.Publisher. A fault of the broker, its streams or its accounts is not counted against the
// event. A subject that no stream listens to is a failure of this event, which may pass: somebody may make the stream.
func (p *publisher) Publish(ctx context.Context, subject, messageID string, headers map[string]string, body []byte,
) error {
	msg := &nats.Msg{Subject: subject, Data: body, Header: nats.Header{}}
	for name, value := range headers {
		msg.Header[name] = []string{value}
	}
	_, err := p.js.PublishMsg(ctx, msg, jetstream.WithMsgID(messageID))
	if err == nil {
		return nil
	}
	fault := stream.FaultOf(err)
	if fault == stream.FaultNoStream {
		fault = p.whyNobodyAnswered(ctx, subject)
	}
	err = fmt.Errorf("publish to %s: %w", subject, err)
	switch fault {
	case stream.FaultBroker:
		p.away()
		return fmt.Errorf("%w: %w", errBrokerAway, err)
	case stream.FaultMessage:
		return engine.Permanent(engine.CodePublishFailed, err)
	default:
		return engine.Transient(engine.CodePublishFailed, err)
	}
}

// whyNobodyAnswered tells a subject without a stream, which JetStream itself can say, from a JetStream that is away.
func (p *publisher) whyNobodyAnswered(ctx context.Context, subject string) stream.PublishFault {
	if exists, err := stream.Exists(ctx, p.js, subject); err == nil && !exists {
		return stream.FaultNoStream
	}
	return stream.FaultBroker
}

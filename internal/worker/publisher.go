package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/engine"
)

// publisher is what the publish nodes of one attempt act through: JetStream, whose acknowledgement it waits for.
type publisher struct {
	js jetstream.JetStream
	// away ends the attempt, without counting it, when the broker cannot be reached: that is no fault of the event.
	away func()
}

// Publish implements engine.Publisher. A subject that no stream listens to is a failure of this event, which may pass:
// somebody may make the stream.
func (p *publisher) Publish(ctx context.Context, subject, messageID string, headers map[string]string, body []byte,
) error {
	msg := &nats.Msg{Subject: subject, Data: body, Header: nats.Header{}}
	for name, value := range headers {
		msg.Header[name] = []string{value}
	}
	_, err := p.js.PublishMsg(ctx, msg, jetstream.WithMsgID(messageID))
	switch {
	case err == nil:
		return nil
	case p.unreachable(err):
		p.away()
		return fmt.Errorf("publish to %s: %w: %w", subject, errBrokerAway, err)
	default:
		return classifyPublish(subject, err)
	}
}

// stallTime is how long a broker may take to answer a ping before a publish that timed out counts as an outage.
const stallTime = time.Second

// unreachable reports whether nobody was there to answer. No responders while connected means that no stream has the
// subject. After a time-out the broker is asked whether it lives.
func (p *publisher) unreachable(err error) bool {
	nc := p.js.Conn()
	switch {
	case !nc.IsConnected():
		return true
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrConnectionReconnecting),
		errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrDisconnected),
		errors.Is(err, nats.ErrStaleConnection):
		return true
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return nc.FlushTimeout(stallTime) != nil
	default:
		return false
	}
}

func classifyPublish(subject string, err error) error {
	err = fmt.Errorf("publish to %s: %w", subject, err)
	var api *jetstream.APIError
	switch {
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadSubject):
		return engine.Permanent(engine.CodePublishFailed, err)
	case errors.As(err, &api) && api.Code == 400:
		return engine.Permanent(engine.CodePublishFailed, err)
	default:
		return engine.Transient(engine.CodePublishFailed, err)
	}
}

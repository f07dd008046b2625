package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/outbox"
)

const (
	// maxInFlight bounds the unacknowledged messages of all claimers together. The server drops publishes of a stream
	// beyond its own limit of 10,000.
	maxInFlight = 4096
	// maxRepublish is how many ids an event may try when its own belongs to other messages.
	maxRepublish = 100
)

// outcome is what became of one row's publish.
type outcome struct {
	err error
	// sequence is the message's place in the stream, if err is nil.
	sequence uint64
	// duplicate: the broker had the message already. republished: it went out under another id.
	duplicate, republished bool
}

// publisher publishes batches to one stream.
type publisher struct {
	js        jetstream.JetStream
	messenger messenger
	window    int
	timeout   time.Duration
	now       func() time.Time
	// refused is when the broker last reported a permission violation, which it does apart from any publish.
	refused atomic.Pointer[time.Time]
}

func newPublisher(nc *nats.Conn, messenger messenger, timeout time.Duration, claimers int, now func() time.Time,
) (*publisher, error) {
	js, err := jetstream.New(nc,
		jetstream.WithPublishAsyncTimeout(timeout),
		jetstream.WithPublishAsyncMaxPending(2*maxInFlight))
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	return &publisher{
		js: js, messenger: messenger, timeout: timeout, window: max(1, maxInFlight/claimers), now: now,
	}, nil
}

// publish sends the rows, several in flight, and gives one outcome for each. After the first broker-wide error it sends
// no more. It returns when ctx ends at the latest; rows without an answer then have ctx's error.
func (p *publisher) publish(ctx context.Context, rows []outbox.Row) []outcome {
	outcomes := make([]outcome, len(rows))
	futures := make([]jetstream.PubAckFuture, len(rows))
	stopped := false
	sent := 0
	send := func() {
		row := &rows[sent]
		switch {
		case row.Fault != nil:
			outcomes[sent].err = row.Fault
		case ctx.Err() != nil:
			outcomes[sent].err = ctx.Err()
		case stopped:
			outcomes[sent].err = errNotSent
		default:
			futures[sent], outcomes[sent].err = p.send(row)
			stopped = outcomes[sent].err != nil && classify(outcomes[sent].err).scope == scopeBroker
		}
		sent++
	}
	for settled := range rows {
		for sent < len(rows) && sent-settled < p.window {
			send()
		}
		if futures[settled] == nil {
			continue
		}
		outcomes[settled] = p.await(ctx, futures[settled])
		if err := outcomes[settled].err; err != nil && classify(err).scope == scopeBroker {
			stopped = true
		}
	}
	for i := range outcomes {
		if outcomes[i].duplicate && outcomes[i].err == nil {
			outcomes[i] = p.resolve(ctx, &rows[i], outcomes[i].sequence)
		}
	}
	return outcomes
}

func (p *publisher) send(row *outbox.Row) (jetstream.PubAckFuture, error) {
	// The library's own retries would outlive a pause.
	return p.js.PublishMsgAsync(p.messenger.message(&row.Delivery, republishID(&row.Delivery, 0)),
		jetstream.WithRetryAttempts(0))
}

func (p *publisher) await(ctx context.Context, future jetstream.PubAckFuture) outcome {
	select {
	case ack := <-future.Ok():
		return p.acknowledged(ack)
	case err := <-future.Err():
		return outcome{err: p.because(err)}
	case <-ctx.Done():
		return outcome{err: p.because(ctx.Err())}
	}
}

func (p *publisher) acknowledged(ack *jetstream.PubAck) outcome {
	if ack.Stream != p.messenger.stream {
		return outcome{err: fmt.Errorf("%w: %s", errForeignStream, ack.Stream)}
	}
	return outcome{sequence: ack.Sequence, duplicate: ack.Duplicate}
}

// because replaces a time-out by the permission violation that explains it.
func (p *publisher) because(err error) error {
	refused := p.refused.Load()
	if refused == nil || p.now().Sub(*refused) > p.timeout+time.Second ||
		classify(err).reason != ReasonPublishTimeout {
		return err
	}
	return nats.ErrPermissionViolation
}

// asyncError takes what the broker reports apart from any publish.
func (p *publisher) asyncError(err error) {
	if errors.Is(err, nats.ErrPermissionViolation) {
		now := p.now()
		p.refused.Store(&now)
	}
}

// resolve settles a duplicate PubAck. It proves only that the broker saw the message id within its window: the message
// at the reported sequence must be this event, else the event goes out under the next id that is made from its own.
func (p *publisher) resolve(ctx context.Context, row *outbox.Row, sequence uint64) outcome {
	for n := 0; n <= maxRepublish; n++ {
		message := p.messenger.message(&row.Delivery, republishID(&row.Delivery, n))
		if n > 0 {
			one, cancel := context.WithTimeout(ctx, p.timeout)
			ack, err := p.js.PublishMsg(one, message, jetstream.WithRetryAttempts(0))
			cancel()
			if err != nil {
				return outcome{err: p.because(err)}
			}
			result := p.acknowledged(ack)
			if result.err != nil || !result.duplicate {
				result.republished = true
				return result
			}
			sequence = result.sequence
		}
		stored, err := p.stored(ctx, sequence)
		if err != nil {
			return outcome{err: err}
		}
		if stored != nil && sameEvent(stored, message) {
			return outcome{sequence: sequence, duplicate: true, republished: n > 0}
		}
	}
	return outcome{err: errIDTaken}
}

// stored reads the headers of the message at a sequence; nil if there is none. It asks the stream's leader: a direct
// get may be answered by a replica that lags behind.
func (p *publisher) stored(ctx context.Context, sequence uint64) (nats.Header, error) {
	one, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	request := []byte(`{"seq":` + strconv.FormatUint(sequence, 10) + `}`)
	reply, err := p.js.Conn().RequestWithContext(one, "$JS.API.STREAM.MSG.GET."+p.messenger.stream, request)
	if err != nil {
		return nil, fmt.Errorf("read message %d of stream %s: %w", sequence, p.messenger.stream, err)
	}
	var response struct {
		Error   *jetstream.APIError `json:"error"`
		Message *struct {
			Headers []byte `json:"hdrs"`
		} `json:"message"`
	}
	if err := json.Unmarshal(reply.Data, &response); err != nil {
		return nil, fmt.Errorf("read message %d of stream %s: %w", sequence, p.messenger.stream, err)
	}
	switch {
	case response.Error != nil && response.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return nil, nil
	case response.Error != nil:
		return nil, response.Error
	case response.Message == nil || len(response.Message.Headers) == 0:
		return nil, nil
	}
	// Headers that cannot be read are not this event's.
	headers, _ := nats.DecodeHeadersMsg(response.Message.Headers)
	return headers, nil
}

package stream_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/stream"
)

func TestFaultOf(t *testing.T) {
	api := func(code jetstream.ErrorCode) error {
		return fmt.Errorf("publish: %w", &jetstream.APIError{Code: 400, ErrorCode: code})
	}
	for name, test := range map[string]struct {
		err  error
		want stream.PublishFault
	}{
		"account's quota used up, with code 400": {api(stream.CodeAccountResourcesExceeded), stream.FaultBroker},
		"stream full":                            {api(stream.CodeStoreFailed), stream.FaultBroker},
		"no leader":                              {api(stream.CodeClusterNotLeader), stream.FaultBroker},
		"message too large for the stream":       {api(jetstream.JSErrCodeStreamMessageExceedsMaximum), stream.FaultMessage},
		"message too large for the server":       {nats.ErrMaxPayload, stream.FaultMessage},
		"bad subject":                            {nats.ErrBadSubject, stream.FaultMessage},
		"time-out":                               {context.DeadlineExceeded, stream.FaultBroker},
		"connection closed":                      {nats.ErrConnectionClosed, stream.FaultBroker},
		"nobody answered":                        {jetstream.ErrNoStreamResponse, stream.FaultNoStream},
		"a code of a later server":               {api(64999), stream.FaultUnknown},
		"anything on the way":                    {errors.New("write: broken pipe"), stream.FaultBroker},
	} {
		if got := stream.FaultOf(test.err); got != test.want {
			t.Errorf("%s: fault %d, want %d", name, got, test.want)
		}
	}
}

package stream

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Codes of the JetStream API, from the server's errors.json, for which nats.go has no constant.
const (
	CodeAccountResourcesExceeded jetstream.ErrorCode = 10002
	CodeClusterNotAvailable      jetstream.ErrorCode = 10008
	CodeClusterNotLeader         jetstream.ErrorCode = 10009
	CodeInsufficientResources    jetstream.ErrorCode = 10023
	CodeMemoryExceeded           jetstream.ErrorCode = 10028
	CodeStorageExceeded          jetstream.ErrorCode = 10047
	CodeExpectedStreamMismatch   jetstream.ErrorCode = 10060
	CodeStoreFailed              jetstream.ErrorCode = 10077
	CodeHeadersTooLarge          jetstream.ErrorCode = 10097
	CodeStreamSealed             jetstream.ErrorCode = 10109
	CodeStreamOffline            jetstream.ErrorCode = 10118
	CodeDuplicateInProcess       jetstream.ErrorCode = 10158
	CodeTooManyRequests          jetstream.ErrorCode = 10167
	CodeStreamOfflineReason      jetstream.ErrorCode = 10194
)

// PublishFault says whose fault a failed publish is.
type PublishFault int

const (
	// FaultUnknown is a refusal by the server with an error that this version does not know.
	FaultUnknown PublishFault = iota
	// FaultMessage is the fault of the message itself: sending it again will not help.
	FaultMessage
	// FaultBroker is that of the broker, the connection, a stream or an account; no message's fault.
	FaultBroker
	// FaultNoStream is that nobody answered. Either no stream has the subject, or JetStream has no leader: ask it.
	FaultNoStream
)

var faultsByCode = map[jetstream.ErrorCode]PublishFault{
	jetstream.JSErrCodeStreamMessageExceedsMaximum:   FaultMessage,
	CodeHeadersTooLarge:                              FaultMessage,
	jetstream.JSErrCodeStreamNotFound:                FaultBroker,
	CodeExpectedStreamMismatch:                       FaultBroker,
	CodeStreamSealed:                                 FaultBroker,
	jetstream.JSErrCodeJetStreamNotEnabled:           FaultBroker,
	jetstream.JSErrCodeJetStreamNotEnabledForAccount: FaultBroker,
	CodeClusterNotAvailable:                          FaultBroker,
	CodeClusterNotLeader:                             FaultBroker,
	CodeStreamOffline:                                FaultBroker,
	CodeStreamOfflineReason:                          FaultBroker,
	CodeAccountResourcesExceeded:                     FaultBroker,
	CodeInsufficientResources:                        FaultBroker,
	CodeMemoryExceeded:                               FaultBroker,
	CodeStorageExceeded:                              FaultBroker,
	CodeStoreFailed:                                  FaultBroker,
	CodeDuplicateInProcess:                           FaultBroker,
	CodeTooManyRequests:                              FaultBroker,
}

// FaultOf tells the errors of one publish apart. What the server did not answer happened on the way, and is no
// message's fault.
func FaultOf(err error) PublishFault {
	var refused *jetstream.APIError
	switch {
	case errors.As(err, &refused):
		return faultsByCode[refused.ErrorCode] // What is not in the map is FaultUnknown.
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadSubject):
		return FaultMessage
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return FaultNoStream
	default:
		return FaultBroker
	}
}

// Exists asks JetStream whether a stream has the subject. An error means that JetStream gave no answer.
func Exists(ctx context.Context, js jetstream.JetStream, subject string) (bool, error) {
	_, err := js.StreamNameBySubject(ctx, subject)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, nil
	}
	return err == nil, err
}

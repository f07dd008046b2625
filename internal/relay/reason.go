package relay

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/outbox"
	"github.com/relayops/relayops/internal/stream"
)

// Reason says, in one word of a closed list, why the relay does not publish.
type Reason string

// The reasons. docs/relay.md says what each means and what to do.
const (
	ReasonStarting             Reason = "Starting"
	ReasonBrokerUnreachable    Reason = "BrokerUnreachable"
	ReasonNoResponders         Reason = "NoResponders"
	ReasonStreamMissing        Reason = "StreamMissing"
	ReasonStreamFull           Reason = "StreamFull"
	ReasonStorageFull          Reason = "StorageFull"
	ReasonStreamConflict       Reason = "StreamConflict"
	ReasonUnauthorized         Reason = "Unauthorized"
	ReasonPublishTimeout       Reason = "PublishTimeout"
	ReasonBrokerBusy           Reason = "BrokerBusy"
	ReasonBrokerRefused        Reason = "BrokerRefused"
	ReasonBrokerTooOld         Reason = "BrokerTooOld"
	ReasonDatabaseUnreachable  Reason = "DatabaseUnreachable"
	ReasonDatabaseUnauthorized Reason = "DatabaseUnauthorized"
	ReasonDatabaseFull         Reason = "DatabaseFull"
	ReasonSchemaNotReady       Reason = "SchemaNotReady"
	ReasonInternalError        Reason = "InternalError"
)

// Reasons are all reasons.
func Reasons() []Reason {
	return []Reason{
		ReasonStarting, ReasonBrokerUnreachable, ReasonNoResponders, ReasonStreamMissing, ReasonStreamFull,
		ReasonStorageFull, ReasonStreamConflict, ReasonUnauthorized, ReasonPublishTimeout, ReasonBrokerBusy,
		ReasonBrokerRefused, ReasonBrokerTooOld, ReasonDatabaseUnreachable, ReasonDatabaseUnauthorized,
		ReasonDatabaseFull, ReasonSchemaNotReady, ReasonInternalError,
	}
}

// scope is whom a publish error is about.
type scope int

const (
	// scopeBroker: every event would have met it, or nobody knows what became of this one. Nothing is counted.
	scopeBroker scope = iota
	// scopeEvent: this event's own fault.
	scopeEvent
	// scopeUnknown: an answer that RelayOps does not know. It is the event's fault if others of its batch got through.
	scopeUnknown
)

// verdict is what an error of one publish means: a reason for scopeBroker and scopeUnknown, a code for scopeEvent and
// scopeUnknown.
type verdict struct {
	scope  scope
	reason Reason
	code   outbox.Code
}

func brokerWide(reason Reason) verdict { return verdict{scope: scopeBroker, reason: reason} }

func eventSpecific(code outbox.Code) verdict { return verdict{scope: scopeEvent, code: code} }

var (
	// errNotSent: the batch was given up before this row's turn.
	errNotSent = errors.New("not sent")
	// errForeignStream: another stream acknowledged the message.
	errForeignStream = errors.New("another stream takes the subject")
	// errIDTaken: no free message id was found for the event.
	errIDTaken = errors.New("message id taken")
)

var apiVerdicts = map[jetstream.ErrorCode]verdict{
	jetstream.JSErrCodeStreamMessageExceedsMaximum:   eventSpecific(outbox.CodeMessageTooLarge),
	stream.CodeHeadersTooLarge:                       eventSpecific(outbox.CodeHeadersTooLarge),
	jetstream.JSErrCodeStreamNotFound:                brokerWide(ReasonStreamMissing),
	stream.CodeExpectedStreamMismatch:                brokerWide(ReasonStreamConflict),
	stream.CodeStreamSealed:                          brokerWide(ReasonStreamConflict),
	jetstream.JSErrCodeJetStreamNotEnabled:           brokerWide(ReasonNoResponders),
	jetstream.JSErrCodeJetStreamNotEnabledForAccount: brokerWide(ReasonNoResponders),
	stream.CodeClusterNotAvailable:                   brokerWide(ReasonNoResponders),
	stream.CodeClusterNotLeader:                      brokerWide(ReasonNoResponders),
	stream.CodeStreamOffline:                         brokerWide(ReasonNoResponders),
	stream.CodeStreamOfflineReason:                   brokerWide(ReasonNoResponders),
	stream.CodeAccountResourcesExceeded:              brokerWide(ReasonStorageFull),
	stream.CodeInsufficientResources:                 brokerWide(ReasonStorageFull),
	stream.CodeMemoryExceeded:                        brokerWide(ReasonStorageFull),
	stream.CodeStorageExceeded:                       brokerWide(ReasonStorageFull),
	stream.CodeDuplicateInProcess:                    brokerWide(ReasonBrokerBusy),
	stream.CodeTooManyRequests:                       brokerWide(ReasonBrokerBusy),
}

// sentinelVerdicts are looked at in order, with errors.Is.
var sentinelVerdicts = []struct {
	err     error
	verdict verdict
}{
	{event.ErrInvalid, eventSpecific(outbox.CodeInvalidEvent)},
	{errIDTaken, eventSpecific(outbox.CodeMessageIDTaken)},
	{nats.ErrMaxPayload, eventSpecific(outbox.CodeMessageTooLarge)},
	{nats.ErrBadSubject, eventSpecific(outbox.CodeBadSubject)},
	{errForeignStream, brokerWide(ReasonStreamConflict)},
	{nats.ErrPermissionViolation, brokerWide(ReasonUnauthorized)},
	{nats.ErrAuthorization, brokerWide(ReasonUnauthorized)},
	{nats.ErrAuthExpired, brokerWide(ReasonUnauthorized)},
	{nats.ErrAuthRevoked, brokerWide(ReasonUnauthorized)},
	{nats.ErrAccountAuthExpired, brokerWide(ReasonUnauthorized)},
	{jetstream.ErrNoStreamResponse, brokerWide(ReasonNoResponders)},
	{nats.ErrNoResponders, brokerWide(ReasonNoResponders)},
	{jetstream.ErrJetStreamNotEnabled, brokerWide(ReasonNoResponders)},
	{jetstream.ErrJetStreamNotEnabledForAccount, brokerWide(ReasonNoResponders)},
	{jetstream.ErrStreamNotFound, brokerWide(ReasonStreamMissing)},
	{jetstream.ErrAsyncPublishTimeout, brokerWide(ReasonPublishTimeout)},
	{jetstream.ErrTooManyStalledMsgs, brokerWide(ReasonPublishTimeout)},
	{nats.ErrTimeout, brokerWide(ReasonPublishTimeout)},
	{context.DeadlineExceeded, brokerWide(ReasonPublishTimeout)},
	{context.Canceled, brokerWide(ReasonPublishTimeout)},
	{jetstream.ErrInvalidJSAck, brokerWide(ReasonBrokerRefused)},
}

// classify tells the errors of one publish apart. What it does not know happened on the way to the broker or in the
// client, and is no event's fault.
func classify(err error) verdict {
	if api, isAPI := errors.AsType[*jetstream.APIError](err); isAPI {
		if known, isKnown := apiVerdicts[api.ErrorCode]; isKnown {
			return known
		}
		if api.ErrorCode == stream.CodeStoreFailed {
			return brokerWide(storeFailure(api.Description))
		}
		return verdict{scope: scopeUnknown, reason: ReasonBrokerRefused, code: outbox.CodeRefused}
	}
	for _, known := range sentinelVerdicts {
		if errors.Is(err, known.err) {
			return known.verdict
		}
	}
	return brokerWide(ReasonBrokerUnreachable)
}

// storeFailure reads the description of a failed write: the server has one code for a full stream and a broken disk.
func storeFailure(description string) Reason {
	for _, full := range []string{"maximum bytes exceeded", "maximum messages exceeded"} {
		if strings.Contains(description, full) {
			return ReasonStreamFull
		}
	}
	return ReasonStorageFull
}

// classifyEnsure tells apart why the stream could not be ensured.
func classifyEnsure(err error) Reason {
	var owned *stream.OwnedByOtherError
	var conflict *stream.ConflictError
	var overlap *stream.OverlapError
	var version *stream.VersionError
	switch {
	case errors.As(err, &owned), errors.As(err, &conflict), errors.As(err, &overlap):
		return ReasonStreamConflict
	case errors.As(err, &version):
		return ReasonBrokerTooOld
	}
	found := classify(err)
	if found.reason == ReasonPublishTimeout {
		return ReasonNoResponders
	}
	return found.reason
}

// classifyDatabase tells apart why the database did not answer a query. An empty reason means that only this claim is
// lost and nothing needs to pause.
func classifyDatabase(err error) Reason {
	if errors.Is(err, outbox.ErrClaimLost) {
		return ""
	}
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return ReasonDatabaseUnreachable
	}
	switch refused.Code {
	case "25P03", "57014", "40001", "40P01": // Lease over, statement cancelled, serialization failure, deadlock.
		return ""
	case "28P01", "28000", "42501", "25006":
		return ReasonDatabaseUnauthorized
	case "53100":
		return ReasonDatabaseFull
	case "3D000", "3F000", "42P01", "42703", "42883", "42804":
		return ReasonSchemaNotReady
	default:
		return ReasonDatabaseUnreachable
	}
}

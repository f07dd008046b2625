package worker

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/stream"
)

// Reason says, in one word of a closed list, why a worker takes nothing up.
type Reason string

// The reasons. docs/worker.md says what each means and what to do.
const (
	ReasonStarting             Reason = "Starting"
	ReasonDatabaseUnreachable  Reason = "DatabaseUnreachable"
	ReasonDatabaseUnauthorized Reason = "DatabaseUnauthorized"
	ReasonDatabaseReadOnly     Reason = "DatabaseReadOnly"
	ReasonDatabaseFull         Reason = "DatabaseFull"
	ReasonSchemaNotReady       Reason = "SchemaNotReady"
	ReasonBrokerUnreachable    Reason = "BrokerUnreachable"
	ReasonBrokerUnauthorized   Reason = "BrokerUnauthorized"
	ReasonBrokerTooOld         Reason = "BrokerTooOld"
	ReasonBrokerRefused        Reason = "BrokerRefused"
	ReasonStreamMissing        Reason = "StreamMissing"
	ReasonConsumerConflict     Reason = "ConsumerConflict"
	ReasonConsumerOwnedByOther Reason = "ConsumerOwnedByOther"
)

// Reasons are all reasons.
func Reasons() []Reason {
	return []Reason{
		ReasonStarting, ReasonDatabaseUnreachable, ReasonDatabaseUnauthorized, ReasonDatabaseReadOnly,
		ReasonDatabaseFull, ReasonSchemaNotReady,
		ReasonBrokerUnreachable, ReasonBrokerUnauthorized, ReasonBrokerTooOld, ReasonBrokerRefused,
		ReasonStreamMissing, ReasonConsumerConflict, ReasonConsumerOwnedByOther,
	}
}

// databaseReason is what an error of the database, or of the check of its schema, means for the whole worker.
func databaseReason(err error) Reason {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return ReasonDatabaseUnreachable
	}
	switch refused.Code {
	case "28P01", "28000", "42501":
		return ReasonDatabaseUnauthorized
	case "25006":
		return ReasonDatabaseReadOnly
	case "53100":
		return ReasonDatabaseFull
	case "3D000", "3F000", "42P01", "42703", "42883":
		return ReasonSchemaNotReady
	default:
		return ReasonDatabaseUnreachable
	}
}

// brokerReason is what an error of the broker means for the whole worker.
func brokerReason(err error) Reason {
	var (
		conflict *stream.ConflictError
		owned    *stream.OwnedByOtherError
		old      *stream.VersionError
		api      *jetstream.APIError
	)
	switch {
	case errors.As(err, &owned):
		return ReasonConsumerOwnedByOther
	case errors.As(err, &conflict):
		return ReasonConsumerConflict
	case errors.As(err, &old):
		return ReasonBrokerTooOld
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return ReasonStreamMissing
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired),
		errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrPermissionViolation):
		return ReasonBrokerUnauthorized
	case errors.As(err, &api):
		return ReasonBrokerRefused
	default:
		return ReasonBrokerUnreachable
	}
}

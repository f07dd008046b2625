package conditions

import "slices"

// databaseReasons and streamReasons are why one of the two servers keeps a daemon from working.
var (
	databaseReasons = []Reason{
		ReasonDatabaseUnreachable, ReasonDatabaseUnauthorized, ReasonDatabaseReadOnly, ReasonDatabaseFull,
		ReasonSchemaNotReady,
	}
	streamReasons = []Reason{
		ReasonBrokerUnreachable, ReasonBrokerUnauthorized, ReasonBrokerTooOld, ReasonBrokerBusy, ReasonBrokerRefused,
		ReasonNoResponders, ReasonPublishTimeout, ReasonStreamMissing, ReasonStreamFull, ReasonStorageFull,
		ReasonStreamConflict, ReasonConsumerConflict, ReasonConsumerOwnedByOther,
	}
	// unknownReasons are why nothing is known of a server.
	unknownReasons = []Reason{ReasonStarting, ReasonNotReported, ReasonScaledToZero, ReasonNoDeployment}
	// readyReasons are those of Ready that are no other condition's, or of one that is not about a server.
	readyReasons = []Reason{
		ReasonRunning, ReasonSuspended, ReasonScaledToZero, ReasonPending, ReasonRollingOut,
		ReasonDeleting, ReasonInvalid, ReasonRelayMissing, ReasonRelayInvalid, ReasonChildOwnedByOther,
		ReasonChildInvalid, ReasonChildRefused, ReasonPodsRefused, ReasonPodFailing, ReasonPodsUnavailable,
		ReasonProgressDeadlineExceeded, ReasonPaused, ReasonInternalError,
	}
	stalledReasons = []Reason{
		ReasonInvalid, ReasonChildOwnedByOther, ReasonChildInvalid, ReasonPodsRefused, ReasonPodFailing,
		ReasonProgressDeadlineExceeded, ReasonDatabaseUnauthorized, ReasonDatabaseReadOnly, ReasonDatabaseFull,
		ReasonSchemaNotReady, ReasonBrokerUnauthorized, ReasonBrokerTooOld, ReasonBrokerRefused, ReasonStorageFull,
		ReasonStreamConflict, ReasonConsumerConflict, ReasonConsumerOwnedByOther,
	}
	reconcilingReasons = []Reason{
		ReasonRollingOut, ReasonDeleting, ReasonRelayMissing, ReasonRelayInvalid, ReasonChildRefused,
		ReasonPodsRefused, ReasonPodFailing, ReasonPodsUnavailable, ReasonPaused, ReasonInternalError,
		ReasonDatabaseUnreachable, ReasonDatabaseUnauthorized, ReasonDatabaseReadOnly, ReasonDatabaseFull,
		ReasonSchemaNotReady, ReasonBrokerUnreachable, ReasonBrokerUnauthorized, ReasonBrokerBusy, ReasonBrokerRefused,
		ReasonNoResponders, ReasonPublishTimeout, ReasonStreamMissing, ReasonStreamFull, ReasonStorageFull,
	}
)

// closedSets are all reasons, by type.
var closedSets = map[string][]Reason{
	TypeReady:       slices.Concat(readyReasons, databaseReasons, streamReasons),
	TypeReconciling: reconcilingReasons,
	TypeStalled:     stalledReasons,
	TypeValid:       {ReasonValid, ReasonInvalid},
	TypeRelayFound:  {ReasonRelayFound, ReasonRelayMissing, ReasonRelayInvalid},
	TypeAvailable: {
		ReasonPodsAvailable, ReasonPodsUnavailable, ReasonPodFailing, ReasonPodsRefused, ReasonScaledToZero,
		ReasonNoDeployment,
	},
	TypeProgressing: {
		ReasonRollingOut, ReasonRolledOut, ReasonProgressDeadlineExceeded, ReasonNoDeployment,
	},
	TypeDatabaseReachable: slices.Concat([]Reason{ReasonReachable}, databaseReasons, unknownReasons),
	TypeStreamReady:       slices.Concat([]Reason{ReasonUsable}, streamReasons, unknownReasons),
}

// Reasons are the closed set of a type of condition: every reason that it can have. A type that is not RelayOps' own
// has none.
func Reasons(kind string) []Reason { return slices.Clone(closedSets[kind]) }

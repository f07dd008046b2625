package conditions

// The types of conditions. RelayFound is a Pipeline's alone.
const (
	TypeReady             = "Ready"
	TypeReconciling       = "Reconciling"
	TypeStalled           = "Stalled"
	TypeValid             = "Valid"
	TypeRelayFound        = "RelayFound"
	TypeAvailable         = "Available"
	TypeProgressing       = "Progressing"
	TypeDatabaseReachable = "DatabaseReachable"
	TypeStreamReady       = "StreamReady"
)

// Reason of a condition. docs/conditions.md says of each what it means and what to do.
type Reason string

// Reasons of Ready, and with it of Reconciling and Stalled.
const (
	// ReasonRunning means that the pods do what the resource says.
	ReasonRunning Reason = "Running"
	// ReasonSuspended means that spec.suspend is true and the pods take nothing up. Set it to false to go on.
	ReasonSuspended Reason = "Suspended"
	// ReasonScaledToZero means that spec.replicas is 0. Scale up to go on.
	ReasonScaledToZero Reason = "ScaledToZero"
	// ReasonPending is the schema's default: no operator has looked at the resource yet. Look whether one runs, and
	// watches this namespace.
	ReasonPending Reason = "Pending"
	// ReasonRollingOut means that pods of this generation are on their way. Wait.
	ReasonRollingOut Reason = "RollingOut"
	// ReasonDeleting means that the resource is being deleted and cleaned up after. Wait; it takes five minutes at
	// most.
	ReasonDeleting Reason = "Deleting"
	// ReasonChildOwnedByOther means that an object with the name of a child belongs to somebody else, and is left
	// alone. Rename the resource, or remove the object.
	ReasonChildOwnedByOther Reason = "ChildOwnedByOther"
	// ReasonChildInvalid means that the API server finds a child invalid. Correct what the message names, mostly in
	// spec.podTemplate.
	ReasonChildInvalid Reason = "ChildInvalid"
	// ReasonChildRefused means that the API server does not take a child now: a quota, an admission webhook, a missing
	// right. It is tried again.
	ReasonChildRefused Reason = "ChildRefused"
	// ReasonPodsRefused means that the API server does not let the Deployment make pods: a quota or a policy.
	ReasonPodsRefused Reason = "PodsRefused"
	// ReasonPodFailing means that a pod cannot run. The message has the pod's own reason.
	ReasonPodFailing Reason = "PodFailing"
	// ReasonPodsUnavailable means that no pod is ready, after they were. Look at the pods.
	ReasonPodsUnavailable Reason = "PodsUnavailable"
	// ReasonProgressDeadlineExceeded means that the pods of this generation did not become ready in ten minutes, and
	// nothing says why. Look at the pods and their events.
	ReasonProgressDeadlineExceeded Reason = "ProgressDeadlineExceeded"
	// ReasonPaused means that the daemon gives a reason which this operator does not know. Read the message; update
	// the operator.
	ReasonPaused Reason = "Paused"
	// ReasonInternalError means that the daemon met a fault of its own. Read its log, and report it.
	ReasonInternalError Reason = "InternalError"
)

// Reasons of Valid and RelayFound; those of a False condition are reasons of Ready too.
const (
	// ReasonValid means that nothing is wrong with the resource.
	ReasonValid Reason = "Valid"
	// ReasonInvalid means that the resource has mistakes. Correct them; the message lists all.
	ReasonInvalid Reason = "Invalid"
	// ReasonRelayFound means that the OutboxRelay is there.
	ReasonRelayFound Reason = "RelayFound"
	// ReasonRelayMissing means that it is not. Create it; it is waited for.
	ReasonRelayMissing Reason = "RelayMissing"
	// ReasonRelayInvalid means that it has mistakes, and the Pipeline cannot be resolved with it. Correct those.
	ReasonRelayInvalid Reason = "RelayInvalid"
)

// Reasons of Available and Progressing.
const (
	// ReasonPodsAvailable means that at least one pod is ready.
	ReasonPodsAvailable Reason = "PodsAvailable"
	// ReasonNoDeployment means that there is none yet. Condition Ready says why.
	ReasonNoDeployment Reason = "NoDeployment"
	// ReasonRolledOut means that all pods are of this generation.
	ReasonRolledOut Reason = "RolledOut"
)

// Reasons of Events beside those of Ready.
const (
	// EventCleanedUp means that what a deleted resource had in database and broker is removed.
	EventCleanedUp = "CleanedUp"
	// EventCleanupAbandoned means that a deleted resource goes, and something is left of it: the message says what.
	EventCleanupAbandoned = "CleanupAbandoned"
)

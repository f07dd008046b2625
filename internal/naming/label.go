package naming

import "strings"

// Labels of every object that the operator makes.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelComponent = "app.kubernetes.io/component"
	LabelManagedBy = "app.kubernetes.io/managed-by"
	LabelPartOf    = "app.kubernetes.io/part-of"
	// LabelOutboxRelay and LabelPipeline hold the name of the resource that the object belongs to; an object has one
	// of them.
	LabelOutboxRelay = "relayops.io/outboxrelay"
	LabelPipeline    = "relayops.io/pipeline"
)

// Values of labels.
const (
	// ManagedBy is the value of [LabelManagedBy]. The operator's caches hold nothing else.
	ManagedBy = "relayops"
	partOf    = "relayops"

	nameRelay   = "relayops-relay"
	nameWorker  = "relayops-worker"
	nameCleanup = "relayops-cleanup"

	componentRelay   = "relay"
	componentWorker  = "worker"
	componentCleanup = "cleanup"
)

// RelayLabels are those of every child of the OutboxRelay.
func RelayLabels(outboxRelay string) map[string]string {
	return labels(nameRelay, componentRelay, LabelOutboxRelay, outboxRelay)
}

// WorkerLabels are those of every child of the Pipeline.
func WorkerLabels(pipeline string) map[string]string {
	return labels(nameWorker, componentWorker, LabelPipeline, pipeline)
}

// RelayCleanupLabels are those of the cleanup Job of the OutboxRelay. No selector of other children finds its pods.
func RelayCleanupLabels(outboxRelay string) map[string]string {
	return labels(nameCleanup, componentCleanup, LabelOutboxRelay, outboxRelay)
}

// WorkerCleanupLabels are those of the cleanup Job of the Pipeline.
func WorkerCleanupLabels(pipeline string) map[string]string {
	return labels(nameCleanup, componentCleanup, LabelPipeline, pipeline)
}

// RelaySelector finds the relays' pods. It never changes between releases.
func RelaySelector(outboxRelay string) map[string]string {
	return map[string]string{LabelName: nameRelay, LabelOutboxRelay: LabelValue(outboxRelay)}
}

// WorkerSelector finds the workers' pods. It never changes between releases.
func WorkerSelector(pipeline string) map[string]string {
	return map[string]string{LabelName: nameWorker, LabelPipeline: LabelValue(pipeline)}
}

// LabelValue is the name of a resource as the value of a label: the name itself, which the schema limits to 63
// characters. One that got past the schema is cut, and ends in a hash.
func LabelValue(name string) string {
	if len(name) <= maxLabel {
		return name
	}
	return strings.TrimRight(name[:maxLabel-1-hashDigits], "-._") + "-" + hash(name)
}

func labels(name, component, owner, ownerName string) map[string]string {
	return map[string]string{
		LabelName:      name,
		LabelInstance:  LabelValue(ownerName),
		LabelComponent: component,
		LabelManagedBy: ManagedBy,
		LabelPartOf:    partOf,
		owner:          LabelValue(ownerName),
	}
}

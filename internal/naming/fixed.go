package naming

const (
	// FieldOwner owns, in server-side apply, the fields that the operator sets.
	FieldOwner = "relayops-operator"
	// Finalizer keeps a resource whose deletionPolicy is Delete until its cleanup Job has ended.
	Finalizer = "relayops.io/cleanup"
	// AnnotationSpecHash of a pod template changes with the run specification, so that pods roll.
	AnnotationSpecHash = "relayops.io/spec-hash"
	// AnnotationDesiredHash of an object tells what was applied last, so that a field that is no longer desired is
	// noticed.
	AnnotationDesiredHash = "relayops.io/desired-hash"
	// AnnotationSpec of a cleanup pod is its run specification.
	AnnotationSpec = "relayops.io/spec"
	// AnnotationOwner of a cleanup Job is the UID of the resource that it cleans up after.
	AnnotationOwner = "relayops.io/owner-uid"
	// VolumePrefix begins the names of the volumes that the operator makes. A pod template may not use it.
	VolumePrefix = "relayops-"
	// SpecVolume is the volume of the run specification.
	SpecVolume = VolumePrefix + "spec"
	// Port of a daemon's own endpoint, in pods and Services.
	Port = 8080
	// PortName is its name there.
	PortName = "http"
	// WebhookCertificateSecret is one of the two Secrets that the operator reads, in its own namespace.
	WebhookCertificateSecret = "relayops-webhook-cert" //nolint:gosec // a name, and no secret
	// StatusKeySecret is the other one: the key that status calls are signed with.
	StatusKeySecret = "relayops-status-key" //nolint:gosec // a name, and no secret
)

// ServiceHost is the host name, within the cluster, of a child Service.
func ServiceHost(namespace, service string) string { return service + "." + namespace + ".svc" }

// StatusAudience is whom a status token is for: the daemons of the OutboxRelay or Pipeline.
func StatusAudience(namespace, name string) string { return namespace + "/" + name }

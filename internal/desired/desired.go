package desired

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/resolve"
	"github.com/relayops/relayops/internal/runspec"
)

// Object is a Kubernetes object, typed or unstructured.
type Object interface {
	metav1.Object
	runtime.Object
}

// Platform is what the operator decides for all resources.
type Platform struct {
	// Image holds the programs /relay and /worker, at its root.
	Image string
	// ImagePullPolicy of the pods; empty: what Kubernetes makes of the image's tag.
	ImagePullPolicy corev1.PullPolicy
	// StatusPublicKey is the Ed25519 key, in base64, that status calls are signed with; empty: the status is open.
	StatusPublicKey string
	// PodMonitor adds one for each resource. The API of the Prometheus operator has to be there.
	PodMonitor bool
	// NetworkPolicy adds one for each resource: nothing reaches the pods but status calls of the operator and
	// scrapes of metrics.
	NetworkPolicy bool
	// OperatorNamespace is where the operator runs, for the NetworkPolicy.
	OperatorNamespace string
}

// Mounts is where the pods built here have Secrets and endpoint: what run specifications are resolved with.
func Mounts() resolve.Mounts {
	return resolve.Mounts{SecretDir: secretDir, ServerAddress: serverAddress}
}

// Relay is every child of the OutboxRelay, in the order in which they are applied. The error is that of a resource that
// no object can be made of, and names the field.
func Relay(relay *v1alpha1.OutboxRelay, spec runspec.Relay, platform Platform) ([]Object, error) {
	return nil, nil
}

// Worker is every child of the Pipeline, in the order in which they are applied. The relay is the one that the Pipeline
// names: its Secrets are mounted.
func Worker(
	pipeline *v1alpha1.Pipeline, relay *v1alpha1.OutboxRelay, spec runspec.Worker, platform Platform,
) ([]Object, error) {
	return nil, nil
}

// RelayCleanup is the Job that removes the stream of an OutboxRelay, run while it is being deleted. No relay may run any
// more: it would make the stream anew.
func RelayCleanup(relay *v1alpha1.OutboxRelay, spec runspec.Relay, platform Platform) (*batchv1.Job, error) {
	return nil, nil
}

// WorkerCleanup is the Job that removes the consumer and the rows of a Pipeline, run while it is being deleted. No
// worker may run any more. The specification that it carries has no graph: a cleanup needs none.
func WorkerCleanup(
	pipeline *v1alpha1.Pipeline, relay *v1alpha1.OutboxRelay, spec runspec.Worker, platform Platform,
) (*batchv1.Job, error) {
	return nil, nil
}

const (
	secretDir     = "/etc/relayops/secrets"
	serverAddress = ":8080"
)

package desired

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/naming"
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
	return resolve.Mounts{SecretDir: secretDir, ServerAddress: ":" + strconv.Itoa(naming.Port)}
}

// FaultError is a mistake of a resource that no object can be made of, and that neither schema nor validation found.
type FaultError struct{ Fault resolve.Fault }

func (e *FaultError) Error() string {
	return e.Fault.Field + ": found " + e.Fault.Found + "; allowed: " + e.Fault.Allowed
}

// Relay is every child of the OutboxRelay, in the order in which they are applied. The error is a [FaultError], or that
// of a specification which cannot be written as JSON.
func Relay(relay *v1alpha1.OutboxRelay, spec runspec.Relay, platform Platform) ([]Object, error) {
	w, err := relayWorkload(relay, spec, platform)
	if err != nil {
		return nil, err
	}
	return w.objects()
}

// Worker is every child of the Pipeline, likewise. The relay is the one that the Pipeline names: its Secrets are
// mounted.
func Worker(
	pipeline *v1alpha1.Pipeline, relay *v1alpha1.OutboxRelay, spec runspec.Worker, platform Platform,
) ([]Object, error) {
	w, err := workerWorkload(pipeline, relay, spec, platform)
	if err != nil {
		return nil, err
	}
	return w.objects()
}

func (w workload) objects() ([]Object, error) {
	pod, err := w.pod()
	if err != nil {
		return nil, err
	}
	objects := []Object{w.serviceAccount(), w.configMap(), w.service(), w.podDisruptionBudget()}
	if w.platform.NetworkPolicy {
		objects = append(objects, w.networkPolicy())
	}
	if w.platform.PodMonitor {
		objects = append(objects, w.podMonitor())
	}
	return append(objects, w.deployment(pod)), nil
}

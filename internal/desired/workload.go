package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/naming"
	"github.com/relayops/relayops/internal/resolve"
	"github.com/relayops/relayops/internal/runspec"
)

const (
	// shortestRelayGrace is how long a relay may take to end at least; it ends its batch within its claim lease.
	shortestRelayGrace = 30 * time.Second
	// graceMargin is what a pod has beyond the time that its daemon takes, to end before it is killed.
	graceMargin = 5 * time.Second
	// maxConfigMap bounds the content of a ConfigMap, in bytes.
	maxConfigMap = 1 << 20
)

// workload is what the objects of one resource are made of.
type workload struct {
	owner     metav1.Object
	ownerKind string
	// name of every object.
	name             string
	labels, selector map[string]string
	// container is the name of the container, and program its path in the image.
	container, program string
	args               []string
	// spec is the run specification, and specHash what changes with the part of it that takes new pods.
	spec     string
	specHash string
	// secrets are mounted, each once.
	secrets  []v1alpha1.SecretKeyRef
	replicas *int32
	grace    time.Duration
	template *v1alpha1.PodTemplate
	platform Platform
}

func relayWorkload(relay *v1alpha1.OutboxRelay, spec runspec.Relay, platform Platform) (workload, error) {
	migrate := relay.Spec.Database.Migrations != v1alpha1.MigrationsExternal
	w := workload{
		owner: relay, ownerKind: v1alpha1.KindOutboxRelay, name: naming.Relay(relay.Name),
		labels: naming.RelayLabels(relay.Name), selector: naming.RelaySelector(relay.Name),
		container: "relay", program: "/relay",
		args:    []string{specArgument, fmt.Sprintf("--migrate=%t", migrate)},
		secrets: secretsOf(relay), replicas: relay.Spec.Replicas,
		grace:    max(shortestRelayGrace, spec.ClaimLease.Std()+graceMargin),
		template: relay.Spec.PodTemplate, platform: platform,
	}
	spec.Server = statusServer(spec.Server, relay, platform)
	err := w.specify(spec, spec)
	return w, err
}

func workerWorkload(
	pipeline *v1alpha1.Pipeline, relay *v1alpha1.OutboxRelay, spec runspec.Worker, platform Platform,
) (workload, error) {
	w := workload{
		owner: pipeline, ownerKind: v1alpha1.KindPipeline, name: naming.Worker(pipeline.Name),
		labels: naming.WorkerLabels(pipeline.Name), selector: naming.WorkerSelector(pipeline.Name),
		container: "worker", program: "/worker", args: []string{specArgument},
		secrets: secretsOf(relay), replicas: pipeline.Spec.Replicas,
		grace:    spec.GracePeriod.Std() + graceMargin,
		template: pipeline.Spec.PodTemplate, platform: platform,
	}
	// Scaling rolls no pod: the number of workers only bounds what the consumer has in flight, and a worker that
	// starts later brings its own number with it.
	spec.Server = statusServer(spec.Server, pipeline, platform)
	lasting := spec
	lasting.Replicas = 0
	err := w.specify(spec, lasting)
	return w, err
}

// statusServer has who may ask for the status.
func statusServer(server runspec.Server, owner metav1.Object, platform Platform) runspec.Server {
	if platform.StatusPublicKey != "" {
		server.StatusKey = platform.StatusPublicKey
		server.StatusAudience = naming.StatusAudience(owner.GetNamespace(), owner.GetName())
	}
	return server
}

// specify sets the specification, and the hash of the part of it that takes new pods.
func (w *workload) specify(spec, lasting any) error {
	text, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return fmt.Errorf("run specification of %s: %w", w.title(), err)
	}
	if len(text) > maxConfigMap {
		return &FaultError{Fault: resolve.Fault{
			Field: "spec", Found: fmt.Sprintf("a run specification of %d bytes", len(text)),
			Allowed: fmt.Sprintf("at most %d bytes, which a ConfigMap can hold: smaller configs of nodes", maxConfigMap),
		}}
	}
	hashed, err := json.Marshal(lasting)
	if err != nil {
		return fmt.Errorf("run specification of %s: %w", w.title(), err)
	}
	sum := sha256.Sum256(hashed)
	w.spec, w.specHash = string(text)+"\n", hex.EncodeToString(sum[:])
	return nil
}

func (w *workload) title() string {
	return w.ownerKind + " " + w.owner.GetNamespace() + "/" + w.owner.GetName()
}

// meta is what every object begins with.
func (w *workload) meta() metav1.ObjectMeta {
	yes := true
	return metav1.ObjectMeta{
		Name: w.name, Namespace: w.owner.GetNamespace(), Labels: maps.Clone(w.labels),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: w.ownerKind,
			Name: w.owner.GetName(), UID: w.owner.GetUID(),
			Controller: &yes, BlockOwnerDeletion: &yes,
		}},
	}
}

func (w *workload) podSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: maps.Clone(w.selector)}
}

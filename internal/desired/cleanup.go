package desired

import (
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/naming"
	"github.com/relayops/relayops/internal/runspec"
)

const (
	// CleanupTime is how long a cleanup may take in all. The resource goes then, whatever is left.
	CleanupTime = 5 * time.Minute
	// cleanupKept is how long an ended Job stays for a look at it.
	cleanupKept = 5 * time.Minute
	// cleanupRetries is how often a cleanup that failed is tried again.
	cleanupRetries int32 = 3
	// cleanupGrace is how long a cleanup that is stopped may take to end.
	cleanupGrace = 10 * time.Second
)

// RelayCleanup is the Job that removes the stream of an OutboxRelay, run while it is being deleted. No relay may run
// any more: it would make the stream anew.
func RelayCleanup(relay *v1alpha1.OutboxRelay, spec runspec.Relay, platform Platform) (*batchv1.Job, error) {
	// A cleanup has no endpoint.
	spec.Server, platform.StatusPublicKey = runspec.Server{}, ""
	w, err := relayWorkload(relay, spec, platform)
	if err != nil {
		return nil, err
	}
	w.name, w.labels = naming.RelayCleanup(relay.Name), naming.RelayCleanupLabels(relay.Name)
	return w.cleanup()
}

// WorkerCleanup is the Job that removes what a Pipeline has in broker and database, run while it is being deleted. No
// worker may run any more. The specification that it carries has no graph and no organisations: a cleanup needs none,
// and both may be large.
func WorkerCleanup(
	pipeline *v1alpha1.Pipeline, relay *v1alpha1.OutboxRelay, spec runspec.Worker, platform Platform,
) (*batchv1.Job, error) {
	spec.Definition, spec.Subscription.Orgs, spec.HTTP.AllowedCIDRs = engine.Definition{}, nil, nil
	spec.Server, platform.StatusPublicKey = runspec.Server{}, ""
	w, err := workerWorkload(pipeline, relay, spec, platform)
	if err != nil {
		return nil, err
	}
	w.name, w.labels = naming.WorkerCleanup(pipeline.Name), naming.WorkerCleanupLabels(pipeline.Name)
	return w.cleanup()
}

func (w *workload) cleanup() (*batchv1.Job, error) {
	w.grace = cleanupGrace
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: maps.Clone(w.labels), Annotations: map[string]string{naming.AnnotationSpec: w.spec},
		},
		Spec: w.podSpec(w.containerWith([]string{"cleanup", specArgument}), specificationOfAnnotation()),
	}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	merged, err := merge(pod, w.template, w.container)
	if err != nil {
		return nil, err
	}
	meta := w.meta()
	meta.OwnerReferences = nil
	meta.Annotations = map[string]string{naming.AnnotationOwner: string(w.owner.GetUID())}
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: meta,
		Spec: batchv1.JobSpec{
			BackoffLimit:            new(cleanupRetries),
			ActiveDeadlineSeconds:   new(seconds(CleanupTime)),
			TTLSecondsAfterFinished: new(int32(seconds(cleanupKept))),
			Template:                merged,
		},
	}, nil
}

// specificationOfAnnotation has the pod's own annotation as a file.
func specificationOfAnnotation() corev1.Volume {
	return corev1.Volume{Name: naming.SpecVolume, VolumeSource: corev1.VolumeSource{
		DownwardAPI: &corev1.DownwardAPIVolumeSource{
			DefaultMode: new(fileMode),
			Items: []corev1.DownwardAPIVolumeFile{{
				Path:     specKey,
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + naming.AnnotationSpec + "']"},
			}},
		},
	}}
}

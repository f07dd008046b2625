package desired_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/desired"
	"github.com/relayops/relayops/internal/runspec"
)

func deploymentOf(t *testing.T, objects []desired.Object) *appsv1.Deployment {
	t.Helper()
	deployment, found := objects[len(objects)-1].(*appsv1.Deployment)
	if !found {
		t.Fatalf("found %T last; want the Deployment, which needs the others", objects[len(objects)-1])
	}
	return deployment
}

func specOf(t *testing.T, objects []desired.Object) string {
	t.Helper()
	for _, object := range objects {
		if configMap, found := object.(*corev1.ConfigMap); found {
			return configMap.Data["spec.json"]
		}
	}
	t.Fatal("found no ConfigMap")
	return ""
}

func kinds(objects []desired.Object) []string {
	var kinds []string
	for _, object := range objects {
		kinds = append(kinds, object.GetObjectKind().GroupVersionKind().Kind)
	}
	return kinds
}

// What is switched off is not in the list, and so pruned.
func TestWhatThePlatformChooses(t *testing.T) {
	w := load(t, "minimal")
	want := []string{"ServiceAccount", "ConfigMap", "Service", "PodDisruptionBudget", "Deployment"}
	if got := kinds(w.relayObjects(t, plain)); !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	want = slices.Insert(want, 4, "NetworkPolicy", "PodMonitor")
	if got := kinds(w.workerObjects(t, all)); !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

// A changed specification takes new pods; more or fewer of them do not.
func TestWhatRollsPods(t *testing.T) {
	w := load(t, "minimal")
	before := w.workerObjects(t, plain)
	scaled := w
	scaled.pipeline = w.pipeline.DeepCopy()
	scaled.pipeline.Spec.Replicas = new(int32(7))
	scaled.worker.Replicas = 7
	after := scaled.workerObjects(t, plain)
	if a, b := deploymentOf(t, before).Spec.Template, deploymentOf(t, after).Spec.Template; a.Annotations["relayops.io/spec-hash"] !=
		b.Annotations["relayops.io/spec-hash"] {
		t.Error("scaling: found another hash; want the pods left alone")
	}
	if *deploymentOf(t, after).Spec.Replicas != 7 || !strings.Contains(specOf(t, after), `"replicas": 7`) {
		t.Errorf("scaling: found %d and %s", *deploymentOf(t, after).Spec.Replicas, specOf(t, after))
	}
	changed := w
	changed.worker.Revision = "another"
	if a, b := deploymentOf(t, before).Spec.Template, deploymentOf(t, changed.workerObjects(t, plain)).Spec.Template; a.Annotations["relayops.io/spec-hash"] ==
		b.Annotations["relayops.io/spec-hash"] {
		t.Error("another revision: found the same hash; want new pods")
	}
}

func TestGrace(t *testing.T) {
	w := load(t, "minimal")
	grace := func(objects []desired.Object) int64 {
		return *deploymentOf(t, objects).Spec.Template.Spec.TerminationGracePeriodSeconds
	}
	// A worker's longest step of 30s, 5s to hand the execution back, 5s for the pod.
	if got := grace(w.workerObjects(t, plain)); got != 40 {
		t.Errorf("worker: found %d, want 40", got)
	}
	w.worker.GracePeriod = runspec.Duration(125500 * 1e6)
	if got := grace(w.workerObjects(t, plain)); got != 131 {
		t.Errorf("worker: found %d, want 131, rounded up", got)
	}
	if got := grace(w.relayObjects(t, plain)); got != 35 {
		t.Errorf("relay: found %d, want 35, its claim lease and 5s", got)
	}
	w.forRelay.ClaimLease = runspec.Duration(2 * 1e9)
	if got := grace(w.relayObjects(t, plain)); got != 30 {
		t.Errorf("relay: found %d, want 30 at least", got)
	}
}

// A request that was not chosen could be above a limit that was, and the API server would refuse the pods.
func TestChosenResourcesReplaceTheDefaults(t *testing.T) {
	w := load(t, "minimal")
	w.relay.Spec.PodTemplate = &v1alpha1.PodTemplate{Resources: &corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")},
	}}
	found := deploymentOf(t, w.relayObjects(t, plain)).Spec.Template.Spec.Containers[0].Resources
	if len(found.Requests) != 0 || found.Limits.Memory().String() != "32Mi" {
		t.Errorf("found %+v, want the chosen limit alone", found)
	}
}

// The schema refuses these as well, unless the one in the cluster is an older one.
func TestReservedNames(t *testing.T) {
	for field, template := range map[string]v1alpha1.PodTemplate{
		"spec.podTemplate.env[1].name": {
			Env: []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "debug"}, {Name: "RELAYOPS_MIGRATE", Value: "true"}},
		},
		"spec.podTemplate.volumes[0].name":           {Volumes: []corev1.Volume{{Name: "relayops-spec"}}},
		"spec.podTemplate.volumeMounts[0].mountPath": {VolumeMounts: []corev1.VolumeMount{{Name: "a", MountPath: "/etc/relayops/spec"}}},
	} {
		w := load(t, "minimal")
		w.relay.Spec.PodTemplate = &template
		_, err := desired.Relay(w.relay, w.forRelay, plain)
		var fault *desired.FaultError
		if !errors.As(err, &fault) || fault.Fault.Field != field || !strings.Contains(err.Error(), "; allowed: ") {
			t.Errorf("%s: found %v; want a fault of the field", field, err)
		}
	}
}

func TestSpecificationThatNoConfigMapHolds(t *testing.T) {
	w := load(t, "minimal")
	w.worker.Subscription.Orgs = slices.Repeat([]string{strings.Repeat("o", 128)}, 9000)
	_, err := desired.Worker(w.pipeline, w.relay, w.worker, plain)
	var fault *desired.FaultError
	if !errors.As(err, &fault) || fault.Fault.Field != "spec" || !strings.Contains(err.Error(), "at most 1048576 bytes") {
		t.Errorf("found %v; want a fault that says how much a ConfigMap holds", err)
	}
}

// What the objects of one resource share is copied: whoever applies one may change it.
func TestObjectsShareNothing(t *testing.T) {
	w := load(t, "full")
	objects := w.relayObjects(t, all)
	objects[0].GetLabels()["app.kubernetes.io/name"] = "changed"
	for _, object := range objects[1:] {
		if got := object.GetLabels()["app.kubernetes.io/name"]; got != "relayops-relay" {
			t.Errorf("%T: found the label %q of another object", object, got)
		}
	}
	for _, object := range objects {
		object.GetLabels()["app.kubernetes.io/name"] = "changed"
	}
	deployment := deploymentOf(t, objects)
	if deployment.Spec.Selector.MatchLabels["app.kubernetes.io/name"] != "relayops-relay" ||
		deployment.Spec.Template.Labels["app.kubernetes.io/name"] != "relayops-relay" {
		t.Errorf("found %+v; want the selector and the pods' labels as they were", deployment.Spec)
	}
	deployment.Spec.Template.Spec.Tolerations[0].Key = "changed"
	if w.relay.Spec.PodTemplate.Tolerations[0].Key != "dedicated" {
		t.Error("found the resource changed")
	}
}

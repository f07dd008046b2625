package desired_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	psaapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/relayops/relayops/internal/desired"
)

// Each object fits the schema that the API server merges applied objects by: no unknown field, no key twice in a list.
// (The API server itself is asked in the controllers' tests.)
func TestObjectsFitTheSchemasOfKubernetes(t *testing.T) {
	schemas := applyconfigurations.NewTypeConverter(scheme.Scheme)
	for name, objects := range cases(t) {
		for _, object := range objects {
			kind := object.GetObjectKind().GroupVersionKind()
			if kind.Kind == "PodMonitor" {
				continue // another project's, see TestPodMonitor
			}
			if _, err := schemas.ObjectToTyped(object); err != nil {
				t.Errorf("%s: %s: %v", name, kind.Kind, err)
			}
			known, _, err := scheme.Scheme.ObjectKinds(object)
			if err != nil || known[0] != kind {
				t.Errorf("%s: found kind %s, want %v (%v)", name, kind, known, err)
			}
		}
	}
}

func TestEveryObjectIsOwnedAndLabelled(t *testing.T) {
	for name, objects := range cases(t) {
		for _, object := range objects {
			kind := object.GetObjectKind().GroupVersionKind().Kind
			if object.GetLabels()["app.kubernetes.io/managed-by"] != "relayops" || object.GetNamespace() != "shop" {
				t.Errorf("%s: %s: found namespace %q and labels %v", name, kind, object.GetNamespace(), object.GetLabels())
			}
			if faults := validation.IsDNS1035Label(object.GetName()); len(faults) > 0 {
				t.Errorf("%s: %s: found name %q: %v", name, kind, object.GetName(), faults)
			}
			owner := metav1.GetControllerOf(object)
			if kind == "Job" {
				// A foreground deletion of the owner would delete it before it has run.
				if owner != nil || object.GetAnnotations()["relayops.io/owner-uid"] == "" {
					t.Errorf("%s: %s: found owner %v, annotations %v; want an annotation alone", name, kind, owner, object.GetAnnotations())
				}
				continue
			}
			if owner == nil || owner.UID == "" || owner.BlockOwnerDeletion == nil || !*owner.BlockOwnerDeletion {
				t.Errorf("%s: %s: found owner %+v; want a controller with its UID", name, kind, owner)
			}
		}
	}
}

func podOf(object desired.Object) *corev1.PodTemplateSpec {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return &object.Spec.Template
	case *batchv1.Job:
		return &object.Spec.Template
	default:
		return nil
	}
}

// Every pod meets the Pod Security Standard "restricted", with everything that a podTemplate can say.
func TestPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := psaapi.LevelVersion{Level: psaapi.LevelRestricted, Version: psaapi.LatestVersion()}
	pods := 0
	for name, objects := range cases(t) {
		for _, object := range objects {
			pod := podOf(object)
			if pod == nil {
				continue
			}
			pods++
			for _, result := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
				if !result.Allowed {
					t.Errorf("%s: %s: %s: %s", name, object.GetName(), result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
			if token := pod.Spec.AutomountServiceAccountToken; token == nil || *token {
				t.Errorf("%s: %s: found a mounted API token; pods call no API", name, object.GetName())
			}
			for _, container := range pod.Spec.Containers {
				if context := container.SecurityContext; context.ReadOnlyRootFilesystem == nil || !*context.ReadOnlyRootFilesystem {
					t.Errorf("%s: %s: found a root file system that can be written", name, object.GetName())
				}
			}
		}
	}
	if pods < 8 {
		t.Errorf("found %d pods, want those of Deployments and Jobs", pods)
	}
}

// Secrets may be missing, and are followed when they are rotated: a file that is mounted by subPath is not.
func TestSecretsAreOptionalDirectories(t *testing.T) {
	seen := 0
	for name, objects := range cases(t) {
		for _, object := range objects {
			pod := podOf(object)
			if pod == nil {
				continue
			}
			for _, volume := range pod.Spec.Volumes {
				if volume.Secret == nil {
					continue
				}
				seen++
				if volume.Secret.Optional == nil || !*volume.Secret.Optional {
					t.Errorf("%s: %s: volume %s: found a Secret that is not optional", name, object.GetName(), volume.Name)
				}
			}
			for _, mount := range pod.Spec.Containers[0].VolumeMounts {
				if mount.SubPath != "" || !mount.ReadOnly {
					t.Errorf("%s: %s: mount %s: found %+v; want a whole directory, read-only", name, object.GetName(), mount.Name, mount)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("found no Secret at all")
	}
}

// Selectors are immutable in Kubernetes: they are written out here, so that no release changes them.
func TestSelectors(t *testing.T) {
	w := load(t, "minimal")
	for _, one := range []struct {
		objects []desired.Object
		want    map[string]string
	}{
		{w.relayObjects(t, all), map[string]string{
			"app.kubernetes.io/name": "relayops-relay", "relayops.io/outboxrelay": "orders",
		}},
		{w.workerObjects(t, all), map[string]string{
			"app.kubernetes.io/name": "relayops-worker", "relayops.io/pipeline": "order-post",
		}},
	} {
		for _, object := range one.objects {
			deployment, found := object.(*appsv1.Deployment)
			if !found {
				continue
			}
			got := deployment.Spec.Selector.MatchLabels
			if len(got) != len(one.want) {
				t.Errorf("found %v, want %v", got, one.want)
			}
			for key, value := range one.want {
				if got[key] != value || deployment.Spec.Template.Labels[key] != value {
					t.Errorf("%s: found %q in the selector and %q in the pods, want %q", key, got[key],
						deployment.Spec.Template.Labels[key], value)
				}
			}
		}
	}
}

func TestPodMonitor(t *testing.T) {
	for _, object := range load(t, "minimal").relayObjects(t, all) {
		monitor, found := object.(*unstructured.Unstructured)
		if !found {
			continue
		}
		// A value that is no JSON value would panic here, and in the cache of a client.
		copied := monitor.DeepCopy()
		endpoints, _, err := unstructured.NestedSlice(copied.Object, "spec", "podMetricsEndpoints")
		if err != nil || len(endpoints) != 1 || endpoints[0].(map[string]any)["port"] != "http" {
			t.Errorf("found %v, %v; want the port http", endpoints, err)
		}
		return
	}
	t.Error("found no PodMonitor")
}

package desired

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// keptReplicaSets is how many old ReplicaSets stay for a look at what ran before.
const keptReplicaSets = 3

// deployment runs the pods. A new pod is ready before an old one is stopped, and old and new ones share the work in
// between.
func (w *workload) deployment(pod corev1.PodTemplateSpec) *appsv1.Deployment {
	replicas, kept := int32(1), int32(keptReplicaSets)
	if w.replicas != nil {
		replicas = *w.replicas
	}
	none, one := intstr.FromInt32(0), intstr.FromInt32(1)
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: w.meta(),
		Spec: appsv1.DeploymentSpec{
			Replicas:             &replicas,
			RevisionHistoryLimit: &kept,
			Selector:             w.podSelector(),
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &none, MaxSurge: &one},
			},
			Template: pod,
		},
	}
}

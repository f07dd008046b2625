package desired

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// podDisruptionBudget lets a drained node evict one pod after the other. A pod that is not ready holds nothing up: its
// relay waits for a server, and waits as well elsewhere.
func (w *workload) podDisruptionBudget() *policyv1.PodDisruptionBudget {
	one, always := intstr.FromInt32(1), policyv1.AlwaysAllow
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: w.meta(),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             &one,
			Selector:                   w.podSelector(),
			UnhealthyPodEvictionPolicy: &always,
		},
	}
}

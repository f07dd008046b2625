package conditions

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// reasonNewReplicaSetAvailable is how the Deployment controller says that a rollout has once been complete. Pods that
// go afterwards do not take it back.
const reasonNewReplicaSetAvailable = "NewReplicaSetAvailable"

// rolledOut: all pods are of the Deployment's generation, and were ready together once.
func rolledOut(d *appsv1.Deployment) bool {
	if d == nil || d.Status.ObservedGeneration < d.Generation {
		return false
	}
	wanted, status := replicas(d), d.Status
	if status.Replicas == wanted && status.UpdatedReplicas == wanted && status.AvailableReplicas >= wanted {
		return true
	}
	progressing := condition(d, appsv1.DeploymentProgressing)
	return progressing != nil && progressing.Reason == reasonNewReplicaSetAvailable &&
		status.Replicas == status.UpdatedReplicas && wanted > 0
}

// available: at least one pod is ready.
func available(d *appsv1.Deployment) bool { return d != nil && d.Status.AvailableReplicas > 0 }

// deadlineExceeded: the rollout did not get on for the Deployment's progressDeadlineSeconds.
func deadlineExceeded(d *appsv1.Deployment) bool {
	if d == nil || d.Status.ObservedGeneration < d.Generation {
		return false
	}
	progressing := condition(d, appsv1.DeploymentProgressing)
	return progressing != nil && progressing.Status == corev1.ConditionFalse
}

// refused is what the API server says about pods that the Deployment may not make; empty: nothing.
func refused(d *appsv1.Deployment) string {
	if d == nil {
		return ""
	}
	failure := condition(d, appsv1.DeploymentReplicaFailure)
	if failure == nil || failure.Status != corev1.ConditionTrue {
		return ""
	}
	return steady(failure.Message)
}

func replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

func condition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == kind {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}

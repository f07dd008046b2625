package apply

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PodMonitor is the kind of the Prometheus operator. It is among the kinds only where the cluster has it.
var PodMonitor = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"}

// Kinds are the kinds of children, an empty object of each.
func Kinds(podMonitor bool) []client.Object {
	kinds := []client.Object{
		&appsv1.Deployment{}, &corev1.ServiceAccount{}, &corev1.ConfigMap{}, &corev1.Service{},
		&policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{},
	}
	if podMonitor {
		monitor := &unstructured.Unstructured{}
		monitor.SetGroupVersionKind(PodMonitor)
		kinds = append(kinds, monitor)
	}
	return kinds
}

// Lists are the same kinds, an empty list of each.
func Lists(podMonitor bool) []client.ObjectList {
	lists := []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.ServiceAccountList{}, &corev1.ConfigMapList{}, &corev1.ServiceList{},
		&policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{},
	}
	if podMonitor {
		monitors := &unstructured.UnstructuredList{}
		monitors.SetGroupVersionKind(PodMonitor.GroupVersion().WithKind(PodMonitor.Kind + "List"))
		lists = append(lists, monitors)
	}
	return lists
}

// Index has the cache find children by [IndexController].
func Index(ctx context.Context, indexer client.FieldIndexer, podMonitor bool) error {
	for _, kind := range Kinds(podMonitor) {
		if err := indexer.IndexField(ctx, kind, IndexController, ControllerUID); err != nil {
			return fmt.Errorf("index %T by controller: %w", kind, err)
		}
	}
	return nil
}

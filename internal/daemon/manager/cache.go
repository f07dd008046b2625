package manager

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relayops/relayops/internal/apply"
	"github.com/relayops/relayops/internal/naming"
)

// cacheOptions have the cache hold our resources, and of everything else what the operator made.
func cacheOptions(namespaces []string, podMonitors bool) cache.Options {
	ours := labels.SelectorFromSet(labels.Set{naming.LabelManagedBy: naming.ManagedBy})
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&batchv1.Job{}: {Label: ours}},
	}
	for _, kind := range apply.Kinds(podMonitors) {
		options.ByObject[kind] = cache.ByObject{Label: ours}
	}
	options.ByObject[&corev1.Pod{}] = cache.ByObject{Label: ours, Transform: withoutSpec}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = make(map[string]cache.Config, len(namespaces))
		for _, namespace := range namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options
}

// withoutSpec drops what the operator does not read of a pod.
func withoutSpec(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.Spec, pod.ManagedFields, pod.Annotations = corev1.PodSpec{}, nil, nil
	}
	return object, nil
}

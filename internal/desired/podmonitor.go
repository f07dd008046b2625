package desired

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/relayops/relayops/internal/naming"
)

// podMonitor has the Prometheus operator scrape every pod. It is unstructured: the types are another project's.
func (w *workload) podMonitor() *unstructured.Unstructured {
	selector := make(map[string]any, len(w.selector))
	for key, value := range w.selector {
		selector[key] = value
	}
	monitor := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "monitoring.coreos.com/v1",
		"kind":       "PodMonitor",
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": selector},
			"podMetricsEndpoints": []any{
				map[string]any{"port": naming.PortName, "path": "/metrics"},
			},
		},
	}}
	meta := w.meta()
	monitor.SetName(meta.Name)
	monitor.SetNamespace(meta.Namespace)
	monitor.SetLabels(meta.Labels)
	monitor.SetOwnerReferences(meta.OwnerReferences)
	return monitor
}

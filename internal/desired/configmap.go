package desired

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	specDir      = "/etc/relayops/spec"
	specKey      = "spec.json"
	specArgument = "--spec=" + specDir + "/" + specKey
)

// configMap holds the run specification. A pod reads it when it starts; one that starts again in between begins with
// the specification of then.
func (w *workload) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: w.meta(),
		Data:       map[string]string{specKey: w.spec},
	}
}

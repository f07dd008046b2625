package desired

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/naming"
	"github.com/relayops/relayops/internal/resolve"
)

const (
	// ownVariables begin the names of variables that the daemons take settings from.
	ownVariables = "RELAYOPS_"
	ownDir       = "/etc/relayops"
)

// merge has the chosen template merged into the operator's own one as a strategic merge patch: maps by key, lists by
// the keys that Kubernetes gives them. Labels and annotations of the operator win, and nothing that the operator needs
// can be replaced.
func merge(own corev1.PodTemplateSpec, chosen *v1alpha1.PodTemplate, container string) (corev1.PodTemplateSpec, error) {
	if chosen == nil {
		return own, nil
	}
	if err := checkReserved(chosen); err != nil {
		return own, err
	}
	patch := patchOf(chosen, container)
	if chosen.Resources != nil {
		// A request that was not chosen could be above a limit that was.
		own.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	}
	original, err := json.Marshal(own)
	if err != nil {
		return own, fmt.Errorf("pod template: %w", err)
	}
	change, err := json.Marshal(patch)
	if err != nil {
		return own, fmt.Errorf("podTemplate: %w", err)
	}
	text, err := strategicpatch.StrategicMergePatch(original, change, corev1.PodTemplateSpec{})
	if err != nil {
		return own, fmt.Errorf("merge podTemplate: %w", err)
	}
	var merged corev1.PodTemplateSpec
	if err := json.Unmarshal(text, &merged); err != nil {
		return own, fmt.Errorf("merged pod template: %w", err)
	}
	maps.Copy(merged.Labels, own.Labels)
	maps.Copy(merged.Annotations, own.Annotations)
	return merged, nil
}

func patchOf(chosen *v1alpha1.PodTemplate, container string) corev1.PodTemplateSpec {
	patched := corev1.Container{Name: container, Env: chosen.Env, VolumeMounts: chosen.VolumeMounts}
	if chosen.Resources != nil {
		patched.Resources = *chosen.Resources
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: texts(chosen.Labels), Annotations: texts(chosen.Annotations)},
		Spec: corev1.PodSpec{
			NodeSelector:              texts(chosen.NodeSelector),
			Tolerations:               chosen.Tolerations,
			Affinity:                  chosen.Affinity,
			TopologySpreadConstraints: chosen.TopologySpreadConstraints,
			PriorityClassName:         chosen.PriorityClassName,
			ImagePullSecrets:          chosen.ImagePullSecrets,
			Volumes:                   chosen.Volumes,
			Containers:                []corev1.Container{patched},
		},
	}
}

func texts[T ~string](values map[string]T) map[string]string {
	if len(values) == 0 {
		return nil
	}
	converted := make(map[string]string, len(values))
	for key, value := range values {
		converted[key] = string(value)
	}
	return converted
}

// checkReserved refuses what would replace something of the operator's own. The schema does so too, unless the one in
// the cluster is an older one.
func checkReserved(chosen *v1alpha1.PodTemplate) error {
	for i, variable := range chosen.Env {
		if strings.HasPrefix(variable.Name, ownVariables) {
			return reserved(fmt.Sprintf("env[%d].name", i), variable.Name, "no name that begins with "+ownVariables)
		}
	}
	for i, volume := range chosen.Volumes {
		if strings.HasPrefix(volume.Name, naming.VolumePrefix) {
			return reserved(fmt.Sprintf("volumes[%d].name", i), volume.Name, "no name that begins with "+naming.VolumePrefix)
		}
	}
	for i, mount := range chosen.VolumeMounts {
		if strings.HasPrefix(mount.MountPath, ownDir) || mount.MountPath == "/etc" {
			return reserved(fmt.Sprintf("volumeMounts[%d].mountPath", i), mount.MountPath,
				"not /etc, and nothing that begins with "+ownDir)
		}
	}
	return nil
}

func reserved(field, found, allowed string) error {
	return &FaultError{Fault: resolve.Fault{
		Field: "spec.podTemplate." + field, Found: fmt.Sprintf("%q", found), Allowed: allowed,
	}}
}

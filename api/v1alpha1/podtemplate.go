package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// PodTemplate is what can be chosen of the pods that the operator makes. It is merged into the operator's own template
// as a strategic merge patch is. It has no meaning without a cluster: relayops dev and relayops lint check it and use
// nothing of it.
type PodTemplate struct {
	// labels are added to the pods' own. A label that the operator sets wins.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="found a key that no label can have; allowed: up to 63 letters, digits, -, _ and ., after a domain and / if any"
	Labels map[string]LabelValue `json:"labels,omitempty"`
	// annotations are added to the pods' own. An annotation that the operator sets wins.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="found a key that no annotation can have; allowed: up to 63 letters, digits, -, _ and ., after a domain and / if any"
	Annotations map[string]MetadataValue `json:"annotations,omitempty"`
	// resources of the container. Without them, it requests 50m of CPU and 64Mi of memory and has no limit.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// nodeSelector is where the pods may run.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="found a key that no label can have; allowed: up to 63 letters, digits, -, _ and ., after a domain and / if any"
	NodeSelector map[string]LabelValue `json:"nodeSelector,omitempty"`
	// tolerations of the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// affinity of the pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// topologySpreadConstraints of the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// env are environment variables of the container. Names that begin with RELAYOPS_ are the operator's own.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(e, !e.name.startsWith('RELAYOPS_'))",message="found a name that begins with RELAYOPS_; allowed: other names, such as LOG_LEVEL"
	Env []corev1.EnvVar `json:"env,omitempty"`
	// volumes of the pods, beside those that the operator makes, whose names begin with relayops-. They are of the
	// kinds that restricted pods may have: a hostPath is none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(v, !v.name.startsWith('relayops-'))",message="found a name that begins with relayops-; allowed: other names"
	// +kubebuilder:validation:XValidation:rule="self.all(v, has(v.configMap) || has(v.secret) || has(v.emptyDir) || has(v.projected) || has(v.persistentVolumeClaim) || has(v.csi) || has(v.ephemeral) || has(v.downwardAPI))",message="found a volume of a kind that restricted pods may not have; allowed: configMap, secret, emptyDir, projected, persistentVolumeClaim, csi, ephemeral and downwardAPI"
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// volumeMounts of the container, not at or below /etc/relayops, where the operator's own are.
	// +optional
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(m, m.mountPath != '/etc' && !m.mountPath.startsWith('/etc/relayops'))",message="found a mount that hides the operator's own; allowed: not /etc, and nothing that begins with /etc/relayops"
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
	// priorityClassName of the pods.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// imagePullSecrets are Secrets of the same namespace that hold credentials of the image's registry.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
}

// LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
type LabelValue string

// MetadataValue is the value of an annotation.
// +kubebuilder:validation:MaxLength=4096
type MetadataValue string

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// PodTemplate is what can be chosen of the pods that the operator makes. It has no meaning without a cluster:
// relayops dev and relayops lint check it and use nothing of it.
type PodTemplate struct {
	// labels are added to the pods' own. A label that the operator sets wins.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Labels map[string]MetadataValue `json:"labels,omitempty"`
	// annotations are added to the pods' own. An annotation that the operator sets wins.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Annotations map[string]MetadataValue `json:"annotations,omitempty"`
	// resources of the container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// nodeSelector is where the pods may run.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	NodeSelector map[string]MetadataValue `json:"nodeSelector,omitempty"`
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
	// env are environment variables of the container, beside those that the operator sets.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Env []corev1.EnvVar `json:"env,omitempty"`
	// volumes of the pods, beside those that the operator makes.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// volumeMounts of the container.
	// +optional
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:MaxItems=32
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

// MetadataValue is the value of a label or an annotation.
// +kubebuilder:validation:MaxLength=4096
type MetadataValue string

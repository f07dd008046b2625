package desired

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/relayops/relayops/internal/naming"
)

// nobody is the user and group of the pods, as distroless images have it. It is also the group of mounted Secrets.
const nobody int64 = 65532

// fileMode of what is mounted: the group reads it, nobody else does.
const fileMode int32 = 0o440

// pod is the template of the pods: the operator's own, with what the resource chose merged into it.
func (w *workload) pod() (corev1.PodTemplateSpec, error) {
	specification := corev1.Volume{Name: naming.SpecVolume, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: w.name},
			DefaultMode:          new(fileMode),
		},
	}}
	container := w.containerWith(w.args)
	container.Ports = []corev1.ContainerPort{{
		Name: naming.PortName, ContainerPort: naming.Port, Protocol: corev1.ProtocolTCP,
	}}
	container.LivenessProbe = probe("/healthz", 10)
	container.ReadinessProbe = probe("/readyz", 5)
	own := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      maps.Clone(w.labels),
			Annotations: map[string]string{naming.AnnotationSpecHash: w.specHash},
		},
		Spec: w.podSpec(container, specification),
	}
	own.Spec.ServiceAccountName = w.name
	return merge(own, w.template, w.container)
}

// podSpec meets the Pod Security Standard "restricted".
func (w *workload) podSpec(container corev1.Container, specification corev1.Volume) corev1.PodSpec {
	return corev1.PodSpec{
		AutomountServiceAccountToken: new(false),
		// Variables of Services would be many, and mistaken for settings.
		EnableServiceLinks:            new(false),
		TerminationGracePeriodSeconds: new(seconds(w.grace)),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(nobody), RunAsGroup: new(nobody), FSGroup: new(nobody),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{container},
		Volumes:    append([]corev1.Volume{specification}, secretVolumes(w.secrets)...),
	}
}

func (w *workload) containerWith(args []string) corev1.Container {
	return corev1.Container{
		Name: w.container, Image: w.platform.Image, ImagePullPolicy: w.platform.ImagePullPolicy,
		Command: []string{w.program}, Args: args,
		Resources: defaultResources(),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: append([]corev1.VolumeMount{
			{Name: naming.SpecVolume, MountPath: specDir, ReadOnly: true},
		}, secretMounts(w.secrets)...),
		// What a daemon says when it gives up is the pod's own reason, which a condition shows.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// defaultResources hold where a resource chooses none.
func defaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
	}}
}

func probe(path string, periodSeconds int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(naming.PortName)},
		},
		PeriodSeconds: periodSeconds, TimeoutSeconds: 3, FailureThreshold: 3,
	}
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

package desired

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/relayops/relayops/internal/naming"
)

// service is where the operator asks for the status. It leads to pods that are not ready too: those have something to
// tell.
func (w *workload) service() *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: w.meta(),
		Spec: corev1.ServiceSpec{
			Type:                     corev1.ServiceTypeClusterIP,
			Selector:                 maps.Clone(w.selector),
			PublishNotReadyAddresses: true,
			Ports: []corev1.ServicePort{{
				Name: naming.PortName, Port: naming.Port, TargetPort: intstr.FromString(naming.PortName),
				Protocol: corev1.ProtocolTCP,
			}},
		},
	}
}

package desired

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/relayops/relayops/internal/naming"
)

const (
	// metricsLabel of a namespace, with the value "enabled", lets its pods scrape metrics.
	metricsLabel = "metrics"
	// namespaceLabel is a label that every namespace has: its name.
	namespaceLabel = "kubernetes.io/metadata.name"
)

// networkPolicy lets the operator and scrapers of metrics reach the one port. What the pods themselves reach is left
// open: database, broker and the targets of http-request are anywhere.
func (w *workload) networkPolicy() *networkingv1.NetworkPolicy {
	tcp, port := corev1.ProtocolTCP, intstr.FromString(naming.PortName)
	return &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: w.meta(),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *w.podSelector(),
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From: []networkingv1.NetworkPolicyPeer{
					fromNamespaces(namespaceLabel, w.platform.OperatorNamespace),
					fromNamespaces(metricsLabel, "enabled"),
				},
				Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: &port}},
			}},
		},
	}
}

func fromNamespaces(label, value string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: value}},
	}
}

package manager

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// Where the webhook's certificate comes from.
const (
	// CertificatesSelf is a certificate that the operator makes and renews itself.
	CertificatesSelf = "self"
	// CertificatesMounted is one that somebody else, such as cert-manager, puts into a directory.
	CertificatesMounted = "mounted"
)

// When each relay and worker gets a PodMonitor.
const (
	// PodMonitorsAuto makes them where the cluster has that API.
	PodMonitorsAuto = "auto"
	// PodMonitorsOff makes none.
	PodMonitorsOff = "off"
)

// Config is what the operator is started with.
type Config struct {
	// Namespace that the operator runs in: that of its two Secrets and of its Lease.
	Namespace string
	// Image of relays and workers, and when it is pulled; empty: what Kubernetes makes of the tag.
	Image           string
	ImagePullPolicy string
	// WatchNamespaces are those whose resources are looked after; empty: all.
	WatchNamespaces []string
	// LeaderElection: several operators run, and one of them leads.
	LeaderElection bool
	// MetricsAddress and HealthAddress are listened at, such as ":8080"; "0": not at all.
	MetricsAddress, HealthAddress string
	// NetworkPolicies makes one for each relay and worker. PodMonitors is auto or off.
	NetworkPolicies bool
	PodMonitors     string
	// Webhook is that of admission.
	Webhook Webhook

	// Log of the operator.
	Log *slog.Logger
	// REST is how the API server is reached.
	REST *rest.Config
	// StatusTransport carries status calls; nil: the network.
	StatusTransport http.RoundTripper
}

// Webhook says how admission is served.
type Webhook struct {
	Enabled bool
	// Port to listen at, and Host; empty: all addresses.
	Port int
	Host string
	// Certificates is self or mounted; Directory is where a mounted one is: tls.crt and tls.key.
	Certificates, Directory string
	// Service leads to the operator, in its namespace; Configuration is the name of both webhook configurations.
	Service, Configuration string
}

// Validate names every setting that cannot be used, with what was found and what is allowed.
func (c *Config) Validate() error {
	var faults []error
	refuse := func(flag, found, allowed string) {
		faults = append(faults, fmt.Errorf("--%s: found %q, allowed: %s", flag, found, allowed))
	}
	if c.Namespace == "" {
		refuse("namespace", "", "the namespace of the operator's pod, also by POD_NAMESPACE")
	}
	if c.Image == "" {
		refuse("image", "", "the image of relays and workers, also by RELAYOPS_IMAGE")
	}
	switch corev1.PullPolicy(c.ImagePullPolicy) {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		refuse("image-pull-policy", c.ImagePullPolicy, "Always, IfNotPresent, Never or nothing")
	}
	if c.PodMonitors != PodMonitorsAuto && c.PodMonitors != PodMonitorsOff {
		refuse("pod-monitors", c.PodMonitors, "auto or off")
	}
	if c.Webhook.Enabled {
		switch c.Webhook.Certificates {
		case CertificatesSelf:
			if c.Webhook.Service == "" {
				refuse("webhook-service", "", "the Service that leads to the operator")
			}
			if c.Webhook.Configuration == "" {
				refuse("webhook-configuration", "", "the name of the webhook configurations")
			}
		case CertificatesMounted:
			if c.Webhook.Directory == "" {
				refuse("webhook-certificate-dir", "", "the directory of tls.crt and tls.key")
			}
		default:
			refuse("webhook-certificates", c.Webhook.Certificates, "self or mounted")
		}
	}
	return errors.Join(faults...)
}

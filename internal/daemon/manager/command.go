package manager

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/telemetry"
)

// Command is the program: flags into a [Config], and [Run].
func Command() *cobra.Command {
	var c Config
	var level string
	var check bool
	command := &cobra.Command{
		Use: "manager", Short: "The operator of OutboxRelays and Pipelines", Args: cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			parsed, err := telemetry.ParseLevel(level)
			if err != nil {
				return fmt.Errorf("--log-level: %w", err)
			}
			c.Log = telemetry.Logger(os.Stderr, parsed)
			if c.REST, err = ctrl.GetConfig(); err != nil {
				return fmt.Errorf("how to reach the API server: %w", err)
			}
			if check {
				return checkRights(command, c)
			}
			return Run(command.Context(), c)
		},
	}
	flags := command.Flags()
	flags.StringVar(&c.Namespace, "namespace", os.Getenv("POD_NAMESPACE"), "namespace of the operator (POD_NAMESPACE)")
	flags.StringVar(&c.Image, "image", os.Getenv("RELAYOPS_IMAGE"), "image of relays and workers (RELAYOPS_IMAGE)")
	flags.StringVar(&c.ImagePullPolicy, "image-pull-policy", "", "when it is pulled: Always, IfNotPresent or Never")
	flags.StringSliceVar(&c.WatchNamespaces, "watch-namespaces", nil, "namespaces to look after; none: all")
	flags.BoolVar(&c.LeaderElection, "leader-elect", false, "several operators run, and one of them leads")
	flags.StringVar(&c.MetricsAddress, "metrics-address", ":8080", "where metrics are served; 0: nowhere")
	flags.StringVar(&c.HealthAddress, "health-address", ":8081", "where health is served; 0: nowhere")
	flags.BoolVar(&c.NetworkPolicies, "network-policies", false, "make a NetworkPolicy for each relay and worker")
	flags.StringVar(&c.PodMonitors, "pod-monitors", PodMonitorsAuto, "make PodMonitors where that API is: auto or off")
	flags.BoolVar(&c.Webhook.Enabled, "webhook", true, "serve admission")
	flags.IntVar(&c.Webhook.Port, "webhook-port", 9443, "port of admission")
	flags.StringVar(&c.Webhook.Certificates, "webhook-certificates", CertificatesSelf,
		"whose certificate admission has: self or mounted")
	flags.StringVar(&c.Webhook.Directory, "webhook-certificate-dir", "/etc/relayops/webhook",
		"where a mounted one is: tls.crt and tls.key")
	flags.StringVar(&c.Webhook.Service, "webhook-service", "relayops-webhook", "Service that leads to admission")
	flags.StringVar(&c.Webhook.Configuration, "webhook-configuration", "relayops",
		"ValidatingWebhookConfiguration that the operator's authority is written to")
	flags.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	flags.BoolVar(&check, "check", false, "look whether the resources can be read, say so and end")
	return command
}

// checkRights is the chart's test: the CustomResourceDefinitions are there and may be read.
func checkRights(command *cobra.Command, c Config) error {
	direct, err := client.New(c.REST, client.Options{Scheme: Scheme()})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	namespaces := c.WatchNamespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, namespace := range namespaces {
		var relays v1alpha1.OutboxRelayList
		if err := direct.List(command.Context(), &relays, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("list OutboxRelays: %w", err)
		}
		var pipelines v1alpha1.PipelineList
		if err := direct.List(command.Context(), &pipelines, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("list Pipelines: %w", err)
		}
		_, err := fmt.Fprintf(command.OutOrStdout(), "%d OutboxRelays and %d Pipelines in %q (\"\": all namespaces)\n",
			len(relays.Items), len(pipelines.Items), namespace)
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

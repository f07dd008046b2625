// Package manager runs the operator: the controllers of OutboxRelay and Pipeline, and admission.
//
// It talks to the Kubernetes API and to the status endpoints of relays and workers. It opens no connection to a
// database or a broker, and reads no Secret but its own two.
package manager

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/controllers/outboxrelay"
	"github.com/relayops/relayops/controllers/pipeline"
	"github.com/relayops/relayops/internal/apply"
	"github.com/relayops/relayops/internal/children"
	"github.com/relayops/relayops/internal/cleanup"
	"github.com/relayops/relayops/internal/desired"
	"github.com/relayops/relayops/internal/statusclient"
	"github.com/relayops/relayops/internal/statustoken"
	"github.com/relayops/relayops/internal/webhookcert"
)

const (
	// LeaseName is the Lease of the leader, in the operator's namespace.
	LeaseName = "relayops-manager"
	// workers is how many resources of a kind are reconciled at once.
	workers = 8
	// requestsPerSecond bounds what the operator asks of the API server, requestBurst in one moment.
	requestsPerSecond, requestBurst = 100, 200
	// changesWaiting bounds the answers of daemons that wait for their reconciliation.
	changesWaiting = 1024
)

// Scheme has the kinds that the operator knows.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// Run runs the operator until ctx ends. The error is that of a setting, or of an API server that does not let it do its
// work.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	ctrl.SetLogger(logr.FromSlogHandler(c.Log.Handler()))
	c.REST = rest.CopyConfig(c.REST)
	c.REST.QPS, c.REST.Burst = requestsPerSecond, requestBurst
	scheme := Scheme()
	httpClient, err := rest.HTTPClientFor(c.REST)
	if err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	if err := awaitKinds(ctx, newMapper(c.REST, httpClient), c.Log); err != nil {
		return err
	}
	direct, err := client.New(c.REST, client.Options{Scheme: scheme, HTTPClient: httpClient})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	podMonitors := false
	if c.PodMonitors == PodMonitorsAuto {
		if podMonitors, err = hasPodMonitors(direct.RESTMapper()); err != nil {
			return fmt.Errorf("look for the API of the Prometheus operator: %w", err)
		}
	}
	signer, err := statusSigner(ctx, direct, c.Namespace)
	if err != nil {
		return err
	}
	o := &operator{Config: c, podMonitors: podMonitors, signer: signer, direct: direct}
	return o.run(ctx, scheme)
}

func newMapper(config *rest.Config, httpClient *http.Client) func() (meta.RESTMapper, error) {
	return func() (meta.RESTMapper, error) { return apiutil.NewDynamicRESTMapper(config, httpClient) }
}

type operator struct {
	Config
	podMonitors bool
	signer      *statustoken.Signer
	// direct reads from the API server itself.
	direct client.Client
	// keeper looks after the webhook's own certificate; nil: there is none.
	keeper *webhookcert.Keeper
}

func (o *operator) run(ctx context.Context, scheme *runtime.Scheme) error {
	options := ctrl.Options{
		Scheme: scheme, Logger: logr.FromSlogHandler(o.Log.Handler()),
		Cache: cacheOptions(o.WatchNamespaces, o.podMonitors),
		Client: client.Options{Cache: &client.CacheOptions{
			Unstructured: true, DisableFor: []client.Object{&corev1.Secret{}},
		}},
		Metrics: server.Options{BindAddress: o.MetricsAddress}, HealthProbeBindAddress: o.HealthAddress,
		LeaderElection: o.LeaderElection, LeaderElectionID: LeaseName, LeaderElectionNamespace: o.Namespace,
		// A leader that stops lets the next one begin at once.
		LeaderElectionReleaseOnCancel: true,
		Controller:                    config.Controller{SkipNameValidation: new(true)},
	}
	if webhooks := o.webhookServer(ctx); webhooks != nil {
		options.WebhookServer = webhooks
	}
	manager, err := ctrl.NewManager(o.REST, options)
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	if err := o.setup(ctx, manager); err != nil {
		return err
	}
	o.Log.Info("operator starts", "namespace", o.Namespace, "watches", o.WatchNamespaces, "image", o.Image,
		"webhook", o.Webhook.Enabled, "podMonitors", o.podMonitors)
	if err := manager.Start(ctx); err != nil {
		return fmt.Errorf("run the operator: %w", err)
	}
	return nil
}

func (o *operator) setup(ctx context.Context, manager ctrl.Manager) error {
	if err := apply.Index(ctx, manager.GetFieldIndexer(), o.podMonitors); err != nil {
		return err
	}
	relays, pipelines := make(chan event.GenericEvent, changesWaiting), make(chan event.GenericEvent, changesWaiting)
	asking := &statusclient.Client{HTTP: statusclient.HTTPClient(o.StatusTransport), Token: o.signer.Sign}
	poller := statusclient.NewPoller(asking.Ask, func(target statusclient.Target) {
		told(ctx, target, relays, pipelines)
	})
	if err := manager.Add(poller); err != nil {
		return fmt.Errorf("add the poller: %w", err)
	}
	made := &children.Children{
		Client: manager.GetClient(), Poller: poller,
		Applier: &apply.Applier{Client: manager.GetClient(), Live: o.direct, Kinds: apply.Lists(o.podMonitors)},
	}
	cleaner := &cleanup.Cleaner{Client: manager.GetClient(), Now: time.Now}
	recorder := manager.GetEventRecorder(LeaseName)
	platform := desired.Platform{
		Image: o.Image, ImagePullPolicy: corev1.PullPolicy(o.ImagePullPolicy), StatusPublicKey: o.signer.PublicKey(),
		PodMonitor: o.podMonitors, NetworkPolicy: o.NetworkPolicies, OperatorNamespace: o.Namespace,
	}
	limits := controller.Options{MaxConcurrentReconciles: workers}
	relayReconciler := &outboxrelay.Reconciler{
		Client: manager.GetClient(), Children: made, Cleaner: cleaner, Events: recorder, Platform: platform, Now: time.Now,
	}
	if err := relayReconciler.Setup(manager, o.podMonitors, relays, limits); err != nil {
		return fmt.Errorf("controller of OutboxRelays: %w", err)
	}
	pipelineReconciler := &pipeline.Reconciler{
		Client: manager.GetClient(), Children: made, Cleaner: cleaner, Events: recorder, Platform: platform, Now: time.Now,
	}
	if err := pipelineReconciler.Setup(ctx, manager, o.podMonitors, pipelines, limits); err != nil {
		return fmt.Errorf("controller of Pipelines: %w", err)
	}
	if err := o.admission(manager); err != nil {
		return err
	}
	if err := manager.AddHealthzCheck("alive", healthz.Ping); err != nil {
		return fmt.Errorf("add a health check: %w", err)
	}
	return manager.AddReadyzCheck("ready", o.ready(manager))
}

// told passes a daemon's new answer on to the controller of its resource.
func told(ctx context.Context, target statusclient.Target, relays, pipelines chan<- event.GenericEvent) {
	meta := metav1.ObjectMeta{Namespace: target.Namespace, Name: target.Name}
	change, to := event.GenericEvent{Object: &v1alpha1.OutboxRelay{ObjectMeta: meta}}, relays
	if target.Kind == v1alpha1.KindPipeline {
		change, to = event.GenericEvent{Object: &v1alpha1.Pipeline{ObjectMeta: meta}}, pipelines
	}
	select {
	case to <- change:
	case <-ctx.Done():
	}
}

// ready: the operator answers admission, if it does at all. It is ready without leading: another one does.
func (o *operator) ready(manager ctrl.Manager) healthz.Checker {
	if !o.Webhook.Enabled {
		return healthz.Ping
	}
	return manager.GetWebhookServer().StartedChecker()
}

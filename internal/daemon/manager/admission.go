package manager

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/relayops/relayops/internal/webhook"
	"github.com/relayops/relayops/internal/webhookcert"
)

// webhookServer serves admission; nil: it is off.
func (o *operator) webhookServer(ctx context.Context) ctrlwebhook.Server {
	if !o.Webhook.Enabled {
		return nil
	}
	options := ctrlwebhook.Options{Host: o.Webhook.Host, Port: o.Webhook.Port, CertDir: o.Webhook.Directory}
	if o.Webhook.Certificates == CertificatesMounted {
		return ctrlwebhook.NewServer(options)
	}
	o.keeper = &webhookcert.Keeper{
		Client: o.direct, Namespace: o.Namespace, Service: o.Webhook.Service, Host: o.Webhook.Host,
		Configuration: o.Webhook.Configuration,
		Now:           time.Now, Random: rand.Reader, Log: o.Log,
	}
	if err := o.keeper.Ensure(ctx); err != nil {
		// It is looked after again; without a certificate the operator is not ready.
		o.Log.Warn("webhook certificate", "error", err)
	}
	options.TLSOpts = []func(*tls.Config){func(config *tls.Config) {
		config.GetCertificate = o.keeper.GetCertificate
		config.MinVersion = tls.VersionTLS12
	}}
	return ctrlwebhook.NewServer(options)
}

func (o *operator) admission(manager ctrl.Manager) error {
	if !o.Webhook.Enabled {
		return nil
	}
	if o.keeper != nil {
		if err := manager.Add(o.keeper); err != nil {
			return fmt.Errorf("add the keeper of the webhook's certificate: %w", err)
		}
	}
	return webhook.Register(manager)
}

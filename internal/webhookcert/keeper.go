package webhookcert

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relayops/relayops/internal/naming"
)

// Interval is how often the certificate and the configurations are looked at.
const Interval = time.Minute

// ErrNone means that there is no certificate to serve yet.
var ErrNone = errors.New("the webhook has no certificate yet")

// Keeper keeps certificate and configurations in order. Its client reads from no cache.
type Keeper struct {
	Client client.Client
	// Namespace of the operator; Service is the name of that which leads to its webhook.
	Namespace, Service string
	// Host is another name that the webhook is called by; empty: there is none.
	Host string
	// Configuration is the name of the ValidatingWebhookConfiguration.
	Configuration string
	Now           func() time.Time
	Random        io.Reader
	Log           *slog.Logger

	served atomic.Pointer[tls.Certificate]
}

// GetCertificate is for [tls.Config].
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if served := k.served.Load(); served != nil {
		return served, nil
	}
	return nil, ErrNone
}

// NeedLeaderElection says that every operator serves admission.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Start looks after the certificate until ctx ends.
func (k *Keeper) Start(ctx context.Context) error {
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := k.Ensure(ctx); err != nil && ctx.Err() == nil {
				k.Log.WarnContext(ctx, "webhook certificate not looked after", "error", err)
			}
		}
	}
}

// names of the Service, as the API server calls it.
func (k *Keeper) names() []string {
	host := naming.ServiceHost(k.Namespace, k.Service)
	names := []string{host, host + ".cluster.local"}
	if k.Host != "" {
		names = append(names, k.Host)
	}
	return names
}

// Ensure makes and renews what is needed, and serves what the API server can trust.
func (k *Keeper) Ensure(ctx context.Context) error {
	content, err := k.secret(ctx)
	if err != nil {
		return err
	}
	pair, err := content.pair()
	if err != nil {
		return err
	}
	known, err := k.inject(ctx, content)
	if err != nil {
		// Without a configuration nobody calls; whoever makes one finds the certificate served.
		if k.served.Load() == nil {
			k.served.Store(pair)
		}
		return err
	}
	// What was put there a moment ago may not have reached every API server: the former certificate is good meanwhile.
	if known || k.served.Load() == nil {
		k.served.Store(pair)
	}
	return nil
}

// secret is the Secret's content as it has to be now.
func (k *Keeper) secret(ctx context.Context) (bundle, error) {
	key := client.ObjectKey{Namespace: k.Namespace, Name: naming.WebhookCertificateSecret}
	for {
		found := &corev1.Secret{}
		err := k.Client.Get(ctx, key, found)
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return nil, fmt.Errorf("secret %s: %w", key, err)
		}
		content, changed, err := bundle(found.Data).renewed(k.names(), k.Now(), k.Random)
		if err != nil || !changed {
			return content, err
		}
		err = k.write(ctx, key, found, missing, content)
		switch {
		case err == nil:
			k.Log.InfoContext(ctx, "webhook certificate made", "secret", key.String())
			return content, nil
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
			continue // Another operator was first: take what it wrote.
		default:
			return nil, fmt.Errorf("secret %s: %w", key, err)
		}
	}
}

func (k *Keeper) write(ctx context.Context, key client.ObjectKey, found *corev1.Secret, missing bool, content bundle,
) error {
	if !missing {
		found.Data = content
		return k.Client.Update(ctx, found)
	}
	return k.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: key.Name, Namespace: key.Namespace,
			Labels: map[string]string{naming.LabelPartOf: naming.ManagedBy, naming.LabelManagedBy: naming.ManagedBy},
		},
		Type: corev1.SecretTypeTLS, Data: content,
	})
}

// inject puts the authorities into the configuration. known: they were there already.
func (k *Keeper) inject(ctx context.Context, content bundle) (known bool, err error) {
	wanted := content.authorities()
	found := &admissionv1.ValidatingWebhookConfiguration{}
	if err := k.Client.Get(ctx, client.ObjectKey{Name: k.Configuration}, found); err != nil {
		return false, fmt.Errorf("ValidatingWebhookConfiguration %s: %w", k.Configuration, err)
	}
	before := found.DeepCopy()
	known = true
	for i := range found.Webhooks {
		if !bytes.Equal(found.Webhooks[i].ClientConfig.CABundle, wanted) {
			known, found.Webhooks[i].ClientConfig.CABundle = false, wanted
		}
	}
	if known {
		return true, nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err = k.Client.Patch(ctx, found, patch, client.FieldOwner(naming.FieldOwner))
	if err != nil && !apierrors.IsConflict(err) {
		return false, fmt.Errorf("ValidatingWebhookConfiguration %s: %w", k.Configuration, err)
	}
	return false, nil
}

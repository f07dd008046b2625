package manager

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relayops/relayops/internal/naming"
	"github.com/relayops/relayops/internal/statustoken"
)

// seedKey is where the Secret has the seed of the key.
const seedKey = "ed25519.seed"

// statusSigner signs status calls with the key in the operator's Secret, which the first operator makes. The client
// reads from no cache: the operator may read no other Secret.
func statusSigner(ctx context.Context, c client.Client, namespace string) (*statustoken.Signer, error) {
	key := client.ObjectKey{Namespace: namespace, Name: naming.StatusKeySecret}
	secret := &corev1.Secret{}
	err := c.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		err = makeStatusKey(ctx, c, key, secret)
	}
	if err != nil {
		return nil, fmt.Errorf("secret %s, the key of status calls: %w", key, err)
	}
	signer, err := statustoken.NewSigner(secret.Data[seedKey], time.Now)
	if err != nil {
		return nil, fmt.Errorf("secret %s, key %s: %w; delete the Secret, and a new one is made", key, seedKey, err)
	}
	return signer, nil
}

func makeStatusKey(ctx context.Context, c client.Client, key client.ObjectKey, secret *corev1.Secret) error {
	seed, err := statustoken.NewSeed(rand.Reader)
	if err != nil {
		return err
	}
	*secret = corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: key.Name, Namespace: key.Namespace,
			Labels: map[string]string{naming.LabelPartOf: naming.ManagedBy, naming.LabelManagedBy: naming.ManagedBy},
		},
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{seedKey: seed},
	}
	err = c.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		return c.Get(ctx, key, secret) // Another operator was first: all use its key.
	}
	return err
}

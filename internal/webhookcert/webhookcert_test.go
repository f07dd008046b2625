package webhookcert

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/relayops/relayops/internal/naming"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func cluster() client.Client {
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(&admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "relayops"},
		Webhooks:   []admissionv1.ValidatingWebhook{{Name: "a.relayops.io"}, {Name: "b.relayops.io"}},
	}).Build()
}

func keeper(c client.Client, now *time.Time) *Keeper {
	return &Keeper{
		Client: c, Namespace: "relayops-system", Service: "relayops-webhook", Configuration: "relayops",
		Now: func() time.Time { return *now }, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
	}
}

func ensure(t *testing.T, k *Keeper) {
	t.Helper()
	if err := k.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func served(t *testing.T, k *Keeper) *x509.Certificate {
	t.Helper()
	pair, err := k.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

// trusted is what the API server trusts.
func trusted(t *testing.T, c client.Client) *x509.CertPool {
	t.Helper()
	found := &admissionv1.ValidatingWebhookConfiguration{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "relayops"}, found); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(found.Webhooks[0].ClientConfig.CABundle, found.Webhooks[1].ClientConfig.CABundle) {
		t.Error("the webhooks trust different authorities")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(found.Webhooks[0].ClientConfig.CABundle) {
		t.Fatal("the API server trusts nobody")
	}
	return pool
}

// verify is what the API server does at every call.
func verify(t *testing.T, c client.Client, k *Keeper, now time.Time) {
	t.Helper()
	_, err := served(t, k).Verify(x509.VerifyOptions{
		Roots: trusted(t, c), CurrentTime: now, DNSName: "relayops-webhook.relayops-system.svc",
	})
	if err != nil {
		t.Fatalf("the API server refuses what is served at %s: %v", now, err)
	}
}

// Ten years, a look every third day: at every moment the API server trusts what each of two operators serves, and certificates and
// authorities are renewed on the way.
func TestNeverRefused(t *testing.T) {
	c, now := cluster(), noon
	one, other := keeper(c, &now), keeper(c, &now)
	ensure(t, one)
	ensure(t, other)
	authorities, certificates := map[string]bool{}, map[string]bool{}
	for range 3650 / 3 {
		for _, k := range []*Keeper{one, other} {
			verify(t, c, k, now)
			ensure(t, k)
			verify(t, c, k, now)
			// Between the looks of two operators, the other one still serves what it did.
			verify(t, c, one, now)
			verify(t, c, other, now)
		}
		certificates[served(t, one).SerialNumber.String()] = true
		authorities[string(served(t, one).AuthorityKeyId)] = true
		now = now.Add(3 * day)
	}
	if len(certificates) < 50 || len(authorities) < 3 {
		t.Errorf("found %d certificates of %d authorities in ten years, want at least 50 of 3", len(certificates), len(authorities))
	}
}

// A steady state writes nothing.
func TestNothingIsWrittenWithoutNeed(t *testing.T) {
	c, now := cluster(), noon
	k := keeper(c, &now)
	ensure(t, k)
	version := func() string {
		secret, configuration := &corev1.Secret{}, &admissionv1.ValidatingWebhookConfiguration{}
		key := client.ObjectKey{Namespace: "relayops-system", Name: naming.WebhookCertificateSecret}
		if err := errors.Join(c.Get(t.Context(), key, secret),
			c.Get(t.Context(), client.ObjectKey{Name: "relayops"}, configuration)); err != nil {
			t.Fatal(err)
		}
		return secret.ResourceVersion + " " + configuration.ResourceVersion
	}
	before := version()
	for range 20 {
		now = now.Add(day)
		ensure(t, k)
	}
	if after := version(); after != before {
		t.Errorf("found the versions %s, want %s", after, before)
	}
}

// Operators that begin at the same moment agree on one authority.
func TestOperatorsAgree(t *testing.T) {
	c, now := cluster(), noon
	keepers := make([]*Keeper, 5)
	var all sync.WaitGroup
	failed := make(chan error, len(keepers))
	for i := range keepers {
		keepers[i] = keeper(c, &now)
		all.Go(func() { failed <- keepers[i].Ensure(context.Background()) })
	}
	all.Wait()
	for range keepers {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	for _, k := range keepers {
		verify(t, c, k, now)
	}
}

// What somebody broke by hand is made anew, and another Service's name gets a certificate of its own.
func TestUnusableContentIsReplaced(t *testing.T) {
	c, now := cluster(), noon
	k := keeper(c, &now)
	ensure(t, k)
	key := client.ObjectKey{Namespace: "relayops-system", Name: naming.WebhookCertificateSecret}
	for _, broken := range []string{keyAuthority, keyAuthorityKey, keyCertificate, keyCertificateKey} {
		secret := &corev1.Secret{}
		if err := c.Get(t.Context(), key, secret); err != nil {
			t.Fatal(err)
		}
		secret.Data[broken] = []byte("nonsense")
		if err := c.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		ensure(t, k) // It is put into the configuration…
		ensure(t, k) // …and served at the next look.
		verify(t, c, k, now)
	}
	k.Service = "another"
	ensure(t, k)
	if err := served(t, k).VerifyHostname("another.relayops-system.svc"); err != nil {
		t.Error(err)
	}
}

func TestNoneBeforeTheFirstLook(t *testing.T) {
	now := noon
	if _, err := keeper(cluster(), &now).GetCertificate(nil); !errors.Is(err, ErrNone) {
		t.Errorf("found %v, want %v", err, ErrNone)
	}
}

// A real handshake, as the API server makes it.
func TestHandshake(t *testing.T) {
	c, now := cluster(), time.Now()
	k := keeper(c, &now)
	ensure(t, k)
	server, clientSide := net.Pipe()
	go func() {
		_ = tls.Server(server, &tls.Config{GetCertificate: k.GetCertificate, MinVersion: tls.VersionTLS12}).Handshake()
	}()
	err := tls.Client(clientSide, &tls.Config{
		RootCAs: trusted(t, c), ServerName: "relayops-webhook.relayops-system.svc", MinVersion: tls.VersionTLS12,
	}).HandshakeContext(t.Context())
	if err != nil {
		t.Error(err)
	}
}

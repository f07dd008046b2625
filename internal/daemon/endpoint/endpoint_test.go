package endpoint_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/relayops/relayops/internal/daemon/endpoint"
	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/statustoken"
)

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func daemon() endpoint.Daemon {
	return endpoint.Daemon{
		Run:     func(ctx context.Context) error { <-ctx.Done(); return nil },
		Ready:   func() (bool, string) { return true, "" },
		Status:  func() any { return map[string]string{"state": "Running"} },
		Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	}
}

// get waits for the endpoint to be there.
func get(t *testing.T, url, token string) int {
	t.Helper()
	for range 200 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
			return response.StatusCode
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s does not answer", url)
	return 0
}

// Only the operator's token for this daemon opens the status; the rest is open to the kubelet and to Prometheus.
func TestStatusNeedsTheOperatorsToken(t *testing.T) {
	signer, err := statustoken.NewSigner(bytes.Repeat([]byte{7}, ed25519.SeedSize), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- endpoint.Run(ctx, runspec.Server{
			Address: address, StatusKey: signer.PublicKey(), StatusAudience: "shop/orders",
		}, daemon())
	}()
	own, err := signer.Sign("shop/orders")
	if err != nil {
		t.Fatal(err)
	}
	other, err := signer.Sign("shop/invoices")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		path, token string
		want        int
	}{
		{"/healthz", "", http.StatusOK}, {"/readyz", "", http.StatusOK}, {"/metrics", "", http.StatusOK},
		{"/status", own, http.StatusOK},
		{"/status", "", http.StatusUnauthorized}, {"/status", other, http.StatusUnauthorized},
		{"/status", own + "x", http.StatusUnauthorized},
	} {
		if got := get(t, "http://"+address+one.path, one.token); got != one.want {
			t.Errorf("%s: found %d, want %d", one.path, got, one.want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestStatusIsOpenWithoutAKey(t *testing.T) {
	address := freeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- endpoint.Run(ctx, runspec.Server{Address: address}, daemon()) }()
	if got := get(t, "http://"+address+"/status", ""); got != http.StatusOK {
		t.Errorf("found %d, want 200", got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAKeyThatIsNoneEndsTheDaemon(t *testing.T) {
	err := endpoint.Run(t.Context(), runspec.Server{Address: "127.0.0.1:0", StatusKey: "!", StatusAudience: "a/b"}, daemon())
	if !errors.Is(err, statustoken.ErrKey) || !strings.Contains(err.Error(), "server") {
		t.Errorf("found %v, want %v", err, statustoken.ErrKey)
	}
}

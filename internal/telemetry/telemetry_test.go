package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func endpoints(ready *bool) Endpoints {
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "things_total", Help: "Things."})
	registry.MustRegister(counter)
	counter.Inc()
	return Endpoints{
		Ready:   func() (bool, string) { return *ready, "BrokerUnreachable: no server" },
		Status:  func() any { return map[string]int{"published": 7} },
		Metrics: registry, Log: slog.New(slog.DiscardHandler),
	}
}

func get(t *testing.T, address, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestServer(t *testing.T) {
	ready := false
	ctx, stop := context.WithCancel(t.Context())
	server, err := Listen(ctx, "127.0.0.1:0", endpoints(&ready))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/healthz": {200, "ok"}, "/readyz": {503, "BrokerUnreachable: no server"}, "/metrics": {200, "things_total 1"},
		"/status": {200, `"published": 7`}, "/other": {404, ""},
	} {
		if status, body := get(t, server.Address(), path); status != want.status || !strings.Contains(body, want.body) {
			t.Errorf("%s: %d %q, want %d %q", path, status, body, want.status, want.body)
		}
	}
	ready = true
	if status, _ := get(t, server.Address(), "/readyz"); status != 200 {
		t.Errorf("/readyz: %d when ready", status)
	}
	if _, err := Listen(ctx, server.Address(), endpoints(&ready)); !errors.Is(err, syscall.EADDRINUSE) ||
		!strings.Contains(err.Error(), server.Address()) {
		t.Errorf("a taken port: %v", err)
	}
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Serve: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Serve does not end")
	}
}

func TestLogger(t *testing.T) {
	for terminal, want := range map[bool]string{true: "level=INFO msg=hello n=1", false: `"level":"INFO","msg":"hello","n":1`} {
		var out bytes.Buffer
		log := newLogger(&out, slog.LevelInfo, terminal)
		log.Info("hello", "n", 1)
		log.Debug("too much")
		if text := out.String(); !strings.Contains(text, want) || strings.Contains(text, "too much") {
			t.Errorf("terminal %t: %s", terminal, text)
		}
	}
}

func TestParseLevel(t *testing.T) {
	for text, want := range map[string]slog.Level{"": slog.LevelInfo, "DEBUG": slog.LevelDebug, "warn": slog.LevelWarn, "error": slog.LevelError} {
		if got, err := ParseLevel(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if _, err := ParseLevel("loud"); err == nil || !strings.Contains(err.Error(), `found "loud", allowed: debug, info, warn, error`) {
		t.Errorf("unknown level: %v", err)
	}
}

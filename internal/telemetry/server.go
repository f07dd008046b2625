package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// shutdownTime bounds how long requests in hand may take once the server is told to stop.
const shutdownTime = 3 * time.Second

// Endpoints is what the server shows.
type Endpoints struct {
	// Ready reports whether the daemon can do its work, and if not, why, in words for an operator.
	Ready func() (ready bool, reason string)
	// Status gives the value that /status shows as JSON; it holds no secret and no event's content.
	Status func() any
	// Verify accepts the bearer token of a call for the status; nil: the status is open.
	Verify func(token string) error
	// Metrics is what /metrics shows.
	Metrics prometheus.Gatherer
	Log     *slog.Logger
}

// Server is a daemon's HTTP endpoint. [Listen] makes it, [Server.Serve] runs it.
type Server struct {
	listener net.Listener
	http     *http.Server
}

// Listen takes the address, such as ":8080" or "127.0.0.1:0"; the error says when it is taken.
func Listen(ctx context.Context, address string, endpoints Endpoints) (*Server, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for health and metrics at %s: %w", address, err)
	}
	return &Server{listener: listener, http: &http.Server{
		Handler:           Handler(endpoints),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(endpoints.Log.Handler(), slog.LevelDebug),
	}}, nil
}

// Address is where the server listens, with the port that was chosen for port 0.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Serve answers until ctx ends, then lets the requests in hand finish for a few seconds. It returns nil after such a
// stop.
func (s *Server) Serve(ctx context.Context) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		// ctx has ended: the time to finish is a new one.
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		err := s.http.Shutdown(grace)
		if errors.Is(err, context.DeadlineExceeded) {
			err = s.http.Close()
		}
		stopped <- err
	})
	err := s.http.Serve(s.listener)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve health and metrics: %w", err)
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("stop serving health and metrics: %w", err)
	}
	return nil
}

// Handler is the endpoint without a listener, for a program that has one already.
func Handler(endpoints Endpoints) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ready, reason := endpoints.Ready(); !ready {
			answer(w, http.StatusServiceUnavailable, reason)
			return
		}
		answer(w, http.StatusOK, "ready")
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		if !mayAsk(endpoints, r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			answer(w, http.StatusUnauthorized, "the status is for the operator: a token of its key is missing or refused")
			return
		}
		body, err := json.MarshalIndent(endpoints.Status(), "", "  ")
		if err != nil {
			endpoints.Log.ErrorContext(r.Context(), "status not written", "error", err)
			answer(w, http.StatusInternalServerError, "the status could not be written as JSON")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(body, '\n')) // The client may be gone: nothing to do about it.
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(endpoints.Metrics, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(endpoints.Log.Handler(), slog.LevelError),
	}))
	return mux
}

// mayAsk: the call carries a token that is accepted, or none is needed.
func mayAsk(endpoints Endpoints, r *http.Request) bool {
	if endpoints.Verify == nil {
		return true
	}
	token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !isBearer {
		return false
	}
	if err := endpoints.Verify(token); err != nil {
		endpoints.Log.DebugContext(r.Context(), "status refused", "error", err)
		return false
	}
	return true
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // The client may be gone: nothing to do about it.
}

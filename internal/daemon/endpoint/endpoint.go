// Package endpoint runs a daemon beside its own HTTP endpoint: health, readiness, metrics, and the status, for which a
// caller needs the operator's token where the run specification has a key.
package endpoint

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/statustoken"
	"github.com/relayops/relayops/internal/telemetry"
)

// Daemon is what runs.
type Daemon struct {
	// Run returns once ctx has ended and the daemon has drained.
	Run func(ctx context.Context) error
	// Ready and Status are what the endpoint shows.
	Ready  func() (bool, string)
	Status func() any
	// Metrics of the daemon.
	Metrics *prometheus.Registry
	Log     *slog.Logger
}

// Run runs the daemon beside its endpoint, which answers until the daemon has drained. Without an address there is no
// endpoint. The error is the daemon's, or that of an address that is taken or of a key that is none.
func Run(ctx context.Context, spec runspec.Server, daemon Daemon) error {
	if spec.Address == "" {
		return daemon.Run(ctx)
	}
	endpoints := telemetry.Endpoints{
		Ready: daemon.Ready, Status: daemon.Status, Metrics: daemon.Metrics, Log: daemon.Log,
	}
	if spec.StatusKey != "" {
		verifier, err := statustoken.NewVerifier(spec.StatusKey, spec.StatusAudience, time.Now)
		if err != nil {
			return fmt.Errorf("server: %w", err)
		}
		endpoints.Verify = verifier.Verify
	}
	server, err := telemetry.Listen(ctx, spec.Address, endpoints)
	if err != nil {
		return err
	}
	daemon.Log.Info("serving health and metrics", "address", server.Address())
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer stopServing()
		return daemon.Run(running)
	})
	group.Go(func() error { return server.Serve(serving) })
	return group.Wait()
}

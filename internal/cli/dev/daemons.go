package dev

import (
	"context"
	"log/slog"

	"github.com/relayops/relayops/internal/daemon/relay"
	"github.com/relayops/relayops/internal/daemon/worker"
	"github.com/relayops/relayops/internal/dev"
	"github.com/relayops/relayops/internal/runspec"
)

// daemons are those of the programs relay and worker.
func daemons() dev.Daemons {
	return dev.Daemons{
		Relay: func(ctx context.Context, spec runspec.Relay, log *slog.Logger) error {
			return relay.Run(ctx, spec, relay.WithLog(log))
		},
		Worker: func(ctx context.Context, spec runspec.Worker, log *slog.Logger) error {
			return worker.Run(ctx, spec, worker.WithLog(log))
		},
	}
}

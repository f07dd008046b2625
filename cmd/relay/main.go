// The relay publishes committed outbox events to a NATS JetStream stream. See docs/relay.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/relayops/relayops/internal/daemon/cleanup"
	"github.com/relayops/relayops/internal/daemon/relay"
	"github.com/relayops/relayops/internal/telemetry"
)

// memoryLimit is soft: the collector works harder near it, instead of letting garbage pile up. GOMEMLIMIT overrides it.
const memoryLimit = 48 << 20

// gcPercent lets the small heap of a relay grow to three times what is alive before it is collected: half the
// collections for a few MiB, and memoryLimit still bounds it. GOGC overrides it.
const gcPercent = 200

func main() {
	spec := flag.String("spec", os.Getenv("RELAYOPS_SPEC_FILE"),
		"JSON file with the relay's specification; without it, environment variables")
	migrate := flag.Bool("migrate", os.Getenv("RELAYOPS_MIGRATE") == "true",
		"bring the database's schema up to date first")
	// A first argument "cleanup" removes what a deleted resource has in broker and database, and ends.
	arguments, removes := os.Args[1:], false
	if len(arguments) > 0 && arguments[0] == "cleanup" {
		arguments, removes = arguments[1:], true
	}
	_ = flag.CommandLine.Parse(arguments) // It ends the program itself.
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, *spec, *migrate, removes); err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run.
	}
}

func run(ctx context.Context, path string, migrate, removes bool) error {
	level, err := telemetry.ParseLevel(os.Getenv("LOG_LEVEL"))
	if err != nil {
		return err
	}
	spec, err := relay.Load(path)
	if err != nil {
		return err
	}
	log := telemetry.Logger(os.Stderr, level)
	slog.SetDefault(log)
	if removes {
		return cleanup.Relay(ctx, spec, log)
	}
	return relay.Run(ctx, spec, relay.WithLog(log), relay.WithMigrations(migrate))
}

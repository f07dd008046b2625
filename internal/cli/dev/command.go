// Package dev is the command relayops dev: the same manifests as in a cluster, on one machine.
package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/relayops/relayops/internal/cli/database"
	"github.com/relayops/relayops/internal/dev"
	"github.com/relayops/relayops/internal/devstate"
	"github.com/relayops/relayops/internal/manifest"
	"github.com/relayops/relayops/internal/telemetry"
)

// exitHard is the status of a process that a second signal ended, as shells have it for Ctrl-C.
const exitHard = 130

// New makes the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dev -f FILE|DIR",
		Short: "Run manifests on this machine, without a cluster",
		Long: `Runs OutboxRelays and Pipelines on this machine, without a cluster: an embedded NATS server, a private
PostgreSQL (or the one that DATABASE_URL names), and a relay and workers in one process. Manifests are checked as the
Kubernetes API server and the operator would check them, and read again when they change: a changed pipeline's worker
is stopped gracefully and started with the new revision; a file with mistakes changes nothing.

Everything lies in the data directory and survives a stop, a kill and a restart. Other relayops commands that run in
the same directory find the database by themselves.`,
		Example: `  relayops dev -f config/samples
  relayops dev -f relay.yaml -f pipeline.yaml --data-dir /var/tmp/shop
  DATABASE_URL=postgres://me@localhost/shop relayops dev -f config/samples

  # beside it, in another terminal:
  relayops emit --org acme --type OrderConfirmed --payload '{"orderNumber": "A-1"}'
  relayops executions
  relayops trace EVENT_ID`,
		Args: cobra.NoArgs,
	}
	var options dev.Options
	var level string
	flags := cmd.Flags()
	flags.StringArrayVarP(&options.Manifests, "filename", "f", nil, "file or directory with manifests; may be repeated")
	if err := cmd.MarkFlagRequired("filename"); err != nil {
		panic(err) // The flag exists.
	}
	flags.StringVar(&options.DataDir, "data-dir", devstate.DefaultDir, "where stream, database and state lie")
	flags.StringVar(&options.DatabaseURL, "database-url", "",
		"PostgreSQL URL to use instead of a private server (default: $DATABASE_URL)")
	flags.IntVar(&options.NATSPort, "nats-port", 0, "port of the embedded NATS server (default: as before, or a free one)")
	flags.IntVar(&options.PostgresPort, "postgres-port", 0,
		"port of the private PostgreSQL (default: as before, or a free one)")
	flags.BoolVar(&options.Fresh, "fresh", false, "remove the data of earlier runs first")
	flags.StringVar(&level, "log-level", "warn", "debug, info, warn or error")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		lowest, err := telemetry.ParseLevel(level)
		if err != nil {
			return fmt.Errorf("--log-level: %w", err)
		}
		if options.DatabaseURL == "" {
			options.DatabaseURL = os.Getenv(database.EnvironmentVariable)
		}
		if err := checkPorts(options); err != nil {
			return err
		}
		options.Out, options.Log = cmd.OutOrStdout(), telemetry.Logger(os.Stderr, lowest)
		options.Daemons, options.Now = daemons(), time.Now
		ctx, stop := gracefulThenHard(cmd.Context())
		defer stop()
		return explain(cmd.ErrOrStderr(), dev.Run(ctx, options))
	}
	return cmd
}

func checkPorts(options dev.Options) error {
	for name, port := range map[string]int{"--nats-port": options.NATSPort, "--postgres-port": options.PostgresPort} {
		if port < 0 || port > 65535 {
			return fmt.Errorf("%s: found %d, allowed: 1 to 65535", name, port)
		}
	}
	return nil
}

// explain prints mistakes in manifests one a line, and leaves the error to say how many they are.
func explain(stderr io.Writer, err error) error {
	var problems manifest.Problems
	if !errors.As(err, &problems) {
		return err
	}
	_, _ = fmt.Fprintln(stderr, problems.Error()) // The error itself is returned as well.
	noun := "mistakes"
	if len(problems) == 1 {
		noun = "mistake"
	}
	return fmt.Errorf("found %d %s; nothing was started", len(problems), noun)
}

// gracefulThenHard ends the context at the first SIGINT or SIGTERM, and the process at the second. The kernel then
// stops the private PostgreSQL, which recovers at the next start.
func gracefulThenHard(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for range 2 {
			select {
			case <-signals:
				if ctx.Err() != nil {
					os.Exit(exitHard)
				}
				cancel()
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

package rig

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/localpostgres"
	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/schema"
	"github.com/relayops/relayops/internal/stream"
)

// Roles that the programs under test connect as, so that the database counts their queries apart.
const (
	RoleRelay  = "bench_relay"
	RoleWorker = "bench_worker"
)

// Options say what rig to set up.
type Options struct {
	// SyncAlways makes the broker sync to disk before each acknowledgement; its default is every two minutes.
	SyncAlways bool
	// Programs are the commands to build, such as relay.
	Programs []string
	// Baseline, if set, is another checkout of this module, whose programs are built too.
	Baseline string
	// ProfileDir, if set, gets a CPU and a heap profile of each run of a program. The programs then run inside this one.
	ProfileDir string
}

// Rig is what a benchmark runs on.
type Rig struct {
	// Dir is the rig's own directory, removed by Close.
	Dir string
	// Database is the benchmark's own pool.
	Database *pgxpool.Pool
	// JetStream is the benchmark's own connection.
	JetStream jetstream.JetStream
	// CountsQueries reports whether the server has pg_stat_statements.
	CountsQueries bool

	postgres *localpostgres.Server
	broker   *Broker
	nats     *nats.Conn
	streams  int
	options  Options
	profiles int
}

// Start sets a rig up. On an error everything that was started is stopped again.
func Start(ctx context.Context, options Options) (_ *Rig, err error) {
	r := &Rig{options: options}
	defer func() { //nolint:contextcheck // Closed also after ctx has ended.
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if r.Dir, err = os.MkdirTemp("", "relayops-bench-"); err != nil {
		return nil, fmt.Errorf("make the benchmark's directory: %w", err)
	}
	// PostgreSQL may run as another user, who has to enter it.
	if err := os.Chmod(r.Dir, 0o755); err != nil { //nolint:gosec // See above.
		return nil, fmt.Errorf("open the benchmark's directory to PostgreSQL: %w", err)
	}
	if err := r.build(ctx, "", options.Programs); err != nil {
		return nil, err
	}
	if options.Baseline != "" {
		if err := r.build(ctx, options.Baseline, options.Programs); err != nil {
			return nil, err
		}
	}
	if err := r.startPostgres(ctx); err != nil {
		return nil, err
	}
	if r.broker, err = startBroker(ctx, r.Dir, options.SyncAlways); err != nil {
		return nil, err
	}
	if r.nats, err = nats.Connect(r.broker.URL, nats.Name("bench")); err != nil {
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	if r.JetStream, err = jetstream.New(r.nats); err != nil {
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	return r, nil
}

func (r *Rig) startPostgres(ctx context.Context) error {
	// Durability and everything else as PostgreSQL has it by default. pg_stat_statements costs nothing until a role
	// switches it on.
	settings := map[string]string{"max_connections": "200", "pg_stat_statements.track": "none"}
	settings["shared_preload_libraries"] = "pg_stat_statements"
	options := localpostgres.Options{Dir: filepath.Join(r.Dir, "postgres"), Settings: settings}
	var err error
	if r.postgres, err = localpostgres.Start(ctx, options); err != nil {
		delete(settings, "shared_preload_libraries") // The contrib package is not installed everywhere.
		if r.postgres, err = localpostgres.Start(ctx, options); err != nil {
			return err
		}
	} else {
		r.CountsQueries = true
	}
	if r.Database, err = pgxpool.New(ctx, r.postgres.URL()); err != nil {
		return fmt.Errorf("make the benchmark's pool: %w", err)
	}
	if _, err := schema.Migrate(ctx, r.Database); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	for _, role := range []string{RoleRelay, RoleWorker} {
		if _, err := r.Database.Exec(ctx, "CREATE ROLE "+role+" LOGIN SUPERUSER PASSWORD 'bench'"); err != nil {
			return fmt.Errorf("create role %s: %w", role, err)
		}
	}
	if r.CountsQueries {
		if _, err := r.Database.Exec(ctx, "CREATE EXTENSION pg_stat_statements"); err != nil {
			return fmt.Errorf("create extension pg_stat_statements: %w", err)
		}
	}
	return nil
}

// CountQueries switches the counting of queries on or off, for connections that the two roles make from now on. It
// slows them down a little, so it is off where throughput is measured.
func (r *Rig) CountQueries(ctx context.Context, on bool) error {
	if !r.CountsQueries {
		return nil
	}
	track := "none"
	if on {
		track = "top"
	}
	for _, role := range []string{RoleRelay, RoleWorker} {
		if _, err := r.Database.Exec(ctx, "ALTER ROLE "+role+" SET pg_stat_statements.track = "+track); err != nil {
			return fmt.Errorf("count the queries of role %s: %w", role, err)
		}
	}
	return nil
}

// DatabaseURL is the URL for one of the roles.
func (r *Rig) DatabaseURL(role string) (string, error) {
	parsed, err := url.Parse(r.postgres.URL())
	if err != nil {
		return "", fmt.Errorf("parse the server's URL: %w", err)
	}
	parsed.User = url.UserPassword(role, "bench")
	return parsed.String(), nil
}

// NATSURL is the broker's URL.
func (r *Rig) NATSURL() string { return r.broker.URL }

// NATSVersion is the broker's version.
func (r *Rig) NATSVersion() string { return r.nats.ConnectedServerVersion() }

// PostgresPID and BrokerPID name the servers' processes.
func (r *Rig) PostgresPID() int { return r.postgres.PID() }

// BrokerPID is the broker's process.
func (r *Rig) BrokerPID() int { return r.broker.PID() }

// Reset empties every table, replaces the stream by a new one, and writes a checkpoint, so that each trial begins
// alike. It gives the new stream's specification.
func (r *Rig) Reset(ctx context.Context) (runspec.Stream, error) {
	if r.streams > 0 {
		if err := r.JetStream.DeleteStream(ctx, streamName(r.streams)); err != nil {
			return runspec.Stream{}, fmt.Errorf("delete the last trial's stream: %w", err)
		}
	}
	if err := r.empty(ctx); err != nil {
		return runspec.Stream{}, err
	}
	spec := StreamSpec(streamName(r.streams + 1))
	if _, err := stream.Ensure(ctx, r.JetStream, spec); err != nil {
		return runspec.Stream{}, err
	}
	r.streams++
	return spec, nil
}

func streamName(n int) string { return fmt.Sprintf("BENCH_%d", n) }

func (r *Rig) empty(ctx context.Context) error {
	rows, err := r.Database.Query(ctx, `SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
		WHERE schemaname = 'relayops' AND tablename <> 'schema_migrations' ORDER BY 1`)
	if err != nil {
		return fmt.Errorf("list tables: %w", err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list tables: %w", err)
	}
	truncate := "TRUNCATE " + strings.Join(tables, ", ") + " RESTART IDENTITY CASCADE"
	if _, err := r.Database.Exec(ctx, truncate); err != nil {
		return fmt.Errorf("empty the tables: %w", err)
	}
	return r.Checkpoint(ctx)
}

// Checkpoint writes one, so that a trial does not pay for what was before it.
func (r *Rig) Checkpoint(ctx context.Context) error {
	if _, err := r.Database.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// StreamSpec is the specification of a trial's stream, with the defaults of an OutboxRelay.
func StreamSpec(name string) runspec.Stream {
	return runspec.Stream{
		Name: name, SubjectPrefix: "events", Replicas: 1,
		MaxBytes: 10 << 30, MaxAge: runspec.Duration(7 * 24 * time.Hour),
		DuplicateWindow: runspec.Duration(10 * time.Minute), MaxMessageBytes: 1 << 20, InstanceKey: "bench",
	}
}

// Close stops the servers and removes the directory.
func (r *Rig) Close() error {
	var errs []error
	if r.nats != nil {
		r.nats.Close()
	}
	if r.Database != nil {
		r.Database.Close()
	}
	if r.broker != nil {
		errs = append(errs, r.broker.Stop())
	}
	if r.postgres != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		errs = append(errs, r.postgres.Stop(ctx))
	}
	if r.Dir != "" {
		errs = append(errs, os.RemoveAll(r.Dir))
	}
	return errors.Join(errs...)
}

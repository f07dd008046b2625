package relay

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/relayops/relayops/internal/connect"
	"github.com/relayops/relayops/internal/daemon/endpoint"
	"github.com/relayops/relayops/internal/relay"
	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/schema"
)

// Option changes how a relay is run.
type Option func(*options)

type options struct {
	log      *slog.Logger
	migrate  bool
	observer func(*relay.Relay)
}

// WithLog sets the logger; the default discards.
func WithLog(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithMigrations brings the database's schema up to date first. Without it a schema that is missing or old keeps the
// relay not ready.
func WithMigrations(migrate bool) Option { return func(o *options) { o.migrate = migrate } }

// WithObserver is called once, before the relay runs, for a program that asks it for its status.
func WithObserver(observer func(*relay.Relay)) Option {
	return func(o *options) { o.observer = observer }
}

// Run runs a relay until ctx ends, then drains it and returns nil. It starts whether or not the servers are there. The
// error is that of a specification that cannot be used, or of a port that is taken, and says what to do.
func Run(ctx context.Context, spec runspec.Relay, opts ...Option) error {
	o := options{log: slog.New(slog.DiscardHandler), observer: func(*relay.Relay) {}}
	for _, option := range opts {
		option(&o)
	}
	return connect.Explain(run(ctx, spec, o))
}

func run(ctx context.Context, spec runspec.Relay, o options) error {
	spec = fitToPool(spec, o.log)
	pool, err := connect.Database(ctx, spec.Database, "relayops-relay", func(config *pgxpool.Config) {
		// A relay finds a dead connection by its own next query; a test of each would be a second query.
		config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	})
	if err != nil {
		return err
	}
	defer pool.Close()
	// A write that a frozen broker does not take must not outlive the batch.
	nc, err := connect.NATS(spec.NATS, "relayops-relay "+spec.Key, o.log, nats.FlusherTimeout(spec.PublishTimeout.Std()))
	if err != nil {
		return err
	}
	defer nc.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r, err := relay.New(relay.Config{
		Spec: spec, Pool: pool, NATS: nc, Log: o.log, Registry: registry, CheckSchema: schemaCheck(spec, o),
	})
	if err != nil {
		return err
	}
	o.observer(r)
	return endpoint.Run(ctx, spec.Server, endpoint.Daemon{
		Run: r.Run, Ready: r.Ready, Status: func() any { return r.Status() }, Metrics: registry, Log: o.log,
	})
}

// fitToPool lowers the claimers to what the pool's bound leaves them.
func fitToPool(spec runspec.Relay, log *slog.Logger) runspec.Relay {
	if most := spec.Database.MaxConnections; most >= 2 && relay.PoolSize(&spec) > most {
		log.Warn("fewer claimers than wanted: the database's maxConnections is too small for them",
			"claimers", most-1, "wanted", spec.Claimers, "maxConnections", most)
		spec.Claimers = int(most - 1)
	}
	spec.Database.MaxConnections = max(spec.Database.MaxConnections, relay.PoolSize(&spec))
	return spec
}

// schemaCheck brings the schema up to date if wanted, and checks what the relay needs of it.
func schemaCheck(spec runspec.Relay, o options) func(context.Context, *pgxpool.Pool) error {
	return func(ctx context.Context, pool *pgxpool.Pool) error {
		if o.migrate {
			applied, err := schema.Migrate(ctx, pool)
			if err != nil {
				return fmt.Errorf("migrate: %w", err)
			}
			for _, migration := range applied {
				o.log.Info("migration applied", "version", migration.Version, "name", migration.Name)
			}
		}
		if !spec.Table.Mapped() {
			// A relay of the application's own table uses nothing else of the schema.
			if err := schema.Check(ctx, pool); err != nil {
				return err
			}
		}
		warnings, err := schema.CheckTable(ctx, pool, spec.Table)
		for _, warning := range warnings {
			o.log.Warn("outbox table", "table", spec.Table.String(), "warning", warning)
		}
		return err
	}
}

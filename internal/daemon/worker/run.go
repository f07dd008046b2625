package worker

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/relayops/relayops/internal/connect"
	"github.com/relayops/relayops/internal/daemon/endpoint"
	"github.com/relayops/relayops/internal/node"
	"github.com/relayops/relayops/internal/node/httprequest"
	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/schema"
	"github.com/relayops/relayops/internal/worker"
)

// Option changes how a worker is run.
type Option func(*options)

type options struct {
	log      *slog.Logger
	migrate  bool
	observer func(*worker.Worker)
	pool     *pgxpool.Pool
	nats     *nats.Conn
}

// WithLog sets the logger; the default discards.
func WithLog(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithMigrations brings the database's schema up to date first. Without it a schema that is missing or old keeps the
// worker not ready.
func WithMigrations(migrate bool) Option { return func(o *options) { o.migrate = migrate } }

// WithObserver is called once, before the worker runs, for a program that asks it for its status.
func WithObserver(observer func(*worker.Worker)) Option {
	return func(o *options) { o.observer = observer }
}

// WithPool and WithNATS give connections that the worker shares with others of its process, in place of its own. They
// stay open.
func WithPool(pool *pgxpool.Pool) Option { return func(o *options) { o.pool = pool } }

// WithNATS is described with [WithPool].
func WithNATS(nc *nats.Conn) Option { return func(o *options) { o.nats = nc } }

// Run runs a worker until ctx ends, then drains it within its grace period and returns nil. It starts whether or not
// the servers are there. The error is that of a specification that cannot be used, or of a port that is taken, and says
// what to do.
func Run(ctx context.Context, spec runspec.Worker, opts ...Option) error {
	o := options{log: slog.New(slog.DiscardHandler), observer: func(*worker.Worker) {}}
	for _, option := range opts {
		option(&o)
	}
	return connect.Explain(run(ctx, spec, o))
}

func run(ctx context.Context, spec runspec.Worker, o options) error {
	client, err := httprequest.NewClient(spec.HTTP)
	if err != nil {
		return fmt.Errorf("http policy: %w", err)
	}
	defer client.CloseIdleConnections()
	if o.pool == nil {
		if o.pool, err = ownPool(ctx, spec.Database); err != nil {
			return err
		}
		defer o.pool.Close()
	}
	if o.nats == nil {
		if o.nats, err = connect.NATS(spec.NATS, "relayops-worker "+spec.PipelineKey, o.log); err != nil {
			return err
		}
		defer o.nats.Close()
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	w, err := worker.New(worker.Config{
		Spec: spec, Pool: o.pool, NATS: o.nats, Types: node.Types(), HTTP: client, Log: o.log, Registry: registry,
		Name: hostname(), CheckSchema: schemaCheck(spec, o),
	})
	if err != nil {
		return err
	}
	o.observer(w)
	return endpoint.Run(ctx, spec.Server, endpoint.Daemon{
		Run: w.Run, Ready: w.Ready, Status: func() any { return w.Status() }, Metrics: registry, Log: o.log,
	})
}

// ownPool opens the worker's pool.
func ownPool(ctx context.Context, spec runspec.Database) (*pgxpool.Pool, error) {
	spec.MaxConnections = max(spec.MaxConnections, fewestConnections)
	return connect.Database(ctx, spec, "relayops-worker", func(config *pgxpool.Config) {
		// A worker finds a dead connection by its own next statement, and knows what to do about a lost answer.
		config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	})
}

// fewestConnections leave some for executions beside those of renewals and of the sweep.
const fewestConnections = 4

// hostname is the worker's name in the rows that it leases: in Kubernetes the pod's.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "worker"
	}
	return name
}

func schemaCheck(spec runspec.Worker, o options) func(context.Context, *pgxpool.Pool) error {
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
		if err := schema.Check(ctx, pool); err != nil {
			return err
		}
		if !spec.Table.Mapped() {
			return nil
		}
		warnings, err := schema.CheckTable(ctx, pool, spec.Table)
		for _, warning := range warnings {
			o.log.Warn("outbox table", "warning", warning)
		}
		return err
	}
}

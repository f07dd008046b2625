package relay

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/relayops/relayops/internal/connect"
	"github.com/relayops/relayops/internal/outbox"
	"github.com/relayops/relayops/internal/runspec"
)

// Config is what a relay is made of. Spec, Pool, NATS, Log and Registry are required. The connections belong to the
// relay while it runs, and to the caller afterwards.
type Config struct {
	Spec runspec.Relay
	// Pool needs a connection for each claimer and one for the relay itself: see [PoolSize].
	Pool *pgxpool.Pool
	// NATS gets the relay's own error handler.
	NATS     *nats.Conn
	Log      *slog.Logger
	Registry prometheus.Registerer
	// CheckSchema reports why the database cannot serve yet; nil: nothing is checked beyond the outbox's own queries. It
	// is asked until it is satisfied, and again after the database was away.
	CheckSchema func(ctx context.Context, pool *pgxpool.Pool) error
	// Now and Random are the clock and the source of jitter, in [0, 1); nil for the real ones.
	Now    func() time.Time
	Random func() float64
}

// PoolSize is how many database connections a relay uses at most, beside the one that listens.
func PoolSize(spec *runspec.Relay) int32 {
	return int32(max(spec.Claimers, 1) + 1)
}

// Relay publishes the events of one outbox to one stream. [New] makes it, [Relay.Run] runs it once.
type Relay struct {
	spec      runspec.Relay
	pool      *pgxpool.Pool
	nc        *nats.Conn
	log       *slog.Logger
	store     *outbox.Store
	publisher *publisher
	metrics   *metrics
	gate      *gate
	check     func(ctx context.Context, pool *pgxpool.Pool) error
	now       func() time.Time
	random    func() float64

	// wake holds at most one wake-up: more would say nothing more.
	wake chan struct{}
	// averageBytes is the mean payload of the last claim, so that the next one does not lock more rows than it reads.
	averageBytes atomic.Int64
	progress     progress

	// Of the supervisor alone.
	failedCounted time.Time
	schemaChecked bool
}

// progress is what the status tells of the work done.
type progress struct {
	mu              sync.Mutex
	backlog         outbox.Backlog
	published       uint64
	failures        uint64
	lastPublished   time.Time
	listening       bool
	streamSeen      bool
	streamRecreated uint64
}

// New makes a relay. The error is that of a specification that cannot be used.
func New(config Config) (*Relay, error) {
	spec := config.Spec
	if err := validate(&spec); err != nil {
		return nil, fmt.Errorf("relay %s: %w", spec.Key, err)
	}
	store, err := outbox.New(spec.Table)
	if err != nil {
		return nil, fmt.Errorf("relay %s: %w", spec.Key, err)
	}
	m, err := newMetrics(config.Registry)
	if err != nil {
		return nil, fmt.Errorf("relay %s: metrics: %w", spec.Key, err)
	}
	r := &Relay{
		spec: spec, pool: config.Pool, nc: config.NATS, store: store, metrics: m, check: config.CheckSchema,
		log: config.Log.With("relay", spec.Key), now: config.Now, random: config.Random,
		wake: make(chan struct{}, 1),
	}
	if r.now == nil {
		r.now = time.Now
	}
	if r.random == nil {
		r.random = rand.Float64
	}
	r.publisher, err = newPublisher(config.NATS,
		newMessenger(spec.Key, spec.Stream.SubjectPrefix, spec.Stream.Name, spec.CloudEvents),
		spec.PublishTimeout.Std(), spec.Claimers, r.now)
	if err != nil {
		return nil, fmt.Errorf("relay %s: %w", spec.Key, err)
	}
	r.gate = newGate(r.now, m.reason)
	return r, nil
}

// Run relays until ctx ends. Then the batches in hand are published, marked and committed, which takes a claim lease at
// most, and Run returns nil. Outages of either server are waited for and are no error.
func (r *Relay) Run(ctx context.Context) error {
	r.nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		r.publisher.asyncError(err)
		r.log.Warn("broker reported an error", "error", connect.Explain(err))
	})
	var work sync.WaitGroup
	work.Go(func() { r.supervise(ctx) })
	if !r.spec.Suspended {
		for range r.spec.Claimers {
			work.Go(func() { r.claimer(ctx) })
		}
		if !r.spec.Database.DisableListen {
			work.Go(func() { r.listen(ctx) })
		}
	}
	work.Wait()
	r.log.Info("relay stopped", "published", r.Status().Published)
	return nil
}

// Wake makes the relay look for due events now instead of at its next poll.
func (r *Relay) Wake() {
	select {
	case r.wake <- struct{}{}:
	default: // There is one already.
	}
}

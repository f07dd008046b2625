package worker

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/execution"
	"github.com/relayops/relayops/internal/runspec"
)

// Config is what a worker is made of. Spec, Pool, NATS, Types, HTTP, Log and Registry are required. Pool and NATS may
// be shared with others.
type Config struct {
	Spec runspec.Worker
	// Pool needs as many connections as the worker has slots, and three more; with fewer executions wait for each
	// other.
	Pool *pgxpool.Pool
	NATS *nats.Conn
	// Types are the node types that the pipeline may use; HTTP is what http-request nodes act through.
	Types engine.Registry
	HTTP  *http.Client
	Log   *slog.Logger
	// Registry gets the worker's metrics, with the pipeline as a label.
	Registry prometheus.Registerer
	// Name is the worker's name in the rows that it leases, such as its host's.
	Name string
	// CheckSchema reports why the database cannot serve yet; nil: nothing is checked.
	CheckSchema func(ctx context.Context, pool *pgxpool.Pool) error
	// Now and Random are the clock and the source of jitter, in [0, 1); nil for the real ones.
	Now    func() time.Time
	Random func() float64
}

// Worker runs the executions of one pipeline. [New] makes it, [Worker.Run] runs it once.
type Worker struct {
	spec      runspec.Worker
	pool      *pgxpool.Pool
	nc        *nats.Conn
	js        jetstream.JetStream
	log       *slog.Logger
	ledger    *execution.Ledger
	revisions *revisions
	services  engine.Services
	metrics   *metrics
	state     *state
	check     func(ctx context.Context, pool *pgxpool.Pool) error
	now       func() time.Time
	random    func() float64

	slots *slots
	hand  *hand
	// pinger wakes the relays up for events that a step emitted.
	pinger *outbox.Pinger
	// topology is nil until the broker was there for the first time.
	topology atomic.Pointer[topology]
	// ensureSoon holds at most one request to look after the consumer.
	ensureSoon chan struct{}

	// work are pulls and executions in hand.
	work sync.WaitGroup
	// draining is closed when no further step may start. running ends when steps are cut off, recording when nothing
	// more is recorded.
	draining           chan struct{}
	running, recording context.Context
}

// New makes a worker. The error is that of a specification that cannot be used; a graph with mistakes is an
// engine.FieldErrors.
func New(config Config) (*Worker, error) {
	spec := config.Spec
	fail := func(err error) (*Worker, error) {
		return nil, fmt.Errorf("worker of pipeline %s: %w", spec.PipelineKey, err)
	}
	if err := validate(&spec); err != nil {
		return fail(err)
	}
	graph, err := engine.Compile(spec.Definition, config.Types)
	if err != nil {
		return fail(err)
	}
	js, err := jetstream.New(config.NATS)
	if err != nil {
		return fail(err)
	}
	m, err := newMetrics(config.Registry, spec.PipelineKey)
	if err != nil {
		return fail(fmt.Errorf("metrics: %w", err))
	}
	w := &Worker{
		spec: spec, pool: config.Pool, nc: config.NATS, js: js, log: config.Log.With("pipeline", spec.PipelineKey),
		metrics: m, check: config.CheckSchema, now: config.Now, random: config.Random,
		services: engine.Services{
			HTTP: config.HTTP, MaxResponseBytes: spec.HTTP.MaxResponseBytes,
			EventSubjectPrefix: spec.Stream.SubjectPrefix,
		},
		slots: newSlots(spec.Concurrency), hand: newHand(),
		ensureSoon: make(chan struct{}, 1), draining: make(chan struct{}),
	}
	if w.now == nil {
		w.now = time.Now
	}
	if w.random == nil {
		w.random = rand.Float64
	}
	w.state = newState(w.now, m.reason)
	writer, err := outbox.NewWriter(outbox.WithTable(spec.Table))
	if err != nil {
		return fail(err)
	}
	w.ledger, err = execution.New(config.Pool, execution.Config{
		PipelineKey: spec.PipelineKey, Owner: config.Name, MaxAttempts: spec.MaxAttempts,
		Lease: spec.LeaseDuration.Std(), Deadline: spec.Deadline.Std(), Table: spec.Table, Events: writer,
		Observe: w.state.observe,
	})
	if err != nil {
		return fail(err)
	}
	w.revisions = newRevisions(w.ledger, config.Types, spec.Revision, graph)
	return w, nil
}

// Run works until ctx ends. Then it takes nothing up any more, lets the steps in hand finish within the grace period,
// hands their executions back, and returns nil. Outages of either server are waited for and are no error.
func (w *Worker) Run(ctx context.Context) error {
	// Neither ends with ctx: what is in hand is finished.
	lasting := context.WithoutCancel(ctx)
	running, cutOff := context.WithCancelCause(lasting)
	defer cutOff(nil)
	recording, giveUp := context.WithCancelCause(lasting)
	defer giveUp(nil)
	w.running, w.recording = running, recording
	w.pinger = outbox.NewPinger(w.pool) //nolint:contextcheck // Close ends it.
	defer w.pinger.Close()

	if w.prepare(ctx, w.ensureLedger, nil) {
		w.serve(ctx, func() {
			reserve := min(mostReserve, w.spec.GracePeriod.Std()/4)
			time.AfterFunc(w.spec.GracePeriod.Std()-reserve, func() { cutOff(errStopping) })
			time.AfterFunc(w.spec.GracePeriod.Std(), func() { giveUp(errStopping) })
		})
	}
	w.log.Info("worker stopped")
	return nil
}

// mostReserve is what is left of the grace period to record ends in, once steps are cut off.
const mostReserve = 3 * time.Second

// serve dispatches until ctx ends, then calls stopping and waits for what is in hand.
func (w *Worker) serve(ctx context.Context, stopping func()) {
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	var keepers sync.WaitGroup
	keepers.Go(func() { w.keepMessages(keeping) })
	keepers.Go(func() { w.keepLeases(keeping) })
	keepers.Go(func() { w.keepReady(ctx) })
	keepers.Go(func() { w.sweepLoop(ctx) })
	if w.spec.Suspended {
		<-ctx.Done()
	} else {
		w.dispatch(ctx)
	}
	close(w.draining)
	stopping()
	w.work.Wait()
	stopKeeping()
	keepers.Wait()
}

// stopping reports whether the worker drains.
func (w *Worker) stopping() bool {
	select {
	case <-w.draining:
		return true
	default:
		return false
	}
}

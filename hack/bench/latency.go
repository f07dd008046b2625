package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/hack/bench/figures"
	"github.com/relayops/relayops/hack/bench/limit"
	"github.com/relayops/relayops/hack/bench/load"
	"github.com/relayops/relayops/hack/bench/rig"
	"github.com/relayops/relayops/internal/runspec"
)

// producers is how many commits may be in flight: far more than the rate needs while the database keeps up.
const producers = 16

// course is one way from a commit to whatever its latency ends with.
type course struct {
	name string
	// start runs the programs.
	start func(ctx context.Context, stream runspec.Stream) ([]*rig.Process, error)
	// wakeUp is how the producers tell of a commit.
	wakeUp wakeUp
	// executes: the latency ends when the execution starts, and not when the message is in the stream.
	executes bool
}

type wakeUp int

const (
	// coalesced: api/outbox writes the event, its Pinger tells, many commits at once if they come fast.
	coalesced wakeUp = iota
	// eachCommit: api/outbox writes the event, and each commit is followed by a ping of its own. What a loop written by
	// hand would do.
	eachCommit
	// nobody: a plain INSERT, and no ping.
	nobody
)

// delays are one trial's latencies in ms: from the commit's return, and from the time at which the schedule wanted the
// event, which holds the commit itself and whatever it had to wait for.
type delays struct {
	fromCommit, fromSchedule []float64
	others                   float64
}

func (d delays) neighbours() float64 { return d.others }

// latency measures, at a rate that nothing saturates, how long an event takes from its commit into the stream and to
// the start of its execution.
func (b *bench) latency(ctx context.Context) error {
	courses := []course{
		{name: "commit-to-publish/relay", start: b.onlyRelay},
		{name: "commit-to-publish/hand", start: b.onlyListeningLoop, wakeUp: eachCommit},
		{name: "commit-to-publish/relay-plain-insert", start: b.onlyRelay, wakeUp: nobody},
		{name: "commit-to-execution-start/relay-and-worker", start: b.relayAndWorker, executes: true},
	}
	results := make(map[string][]delays, len(courses))
	for range b.plan.latencyRounds {
		for _, c := range courses {
			d, err := undisturbed(b, func() (delays, error) { return b.observe(ctx, c, b.plan.rate) })
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			b.logf("latency: %s p50 %.2f ms, p99 %.2f ms", c.name,
				figures.Quantile(d.fromCommit, 0.5), figures.Quantile(d.fromCommit, 0.99))
			results[c.name] = append(results[c.name], d)
		}
	}
	b.report.Add("latency/rate", b.plan.rate, "events/s", nil)
	pollBound := milliseconds(b.plan.pollInterval) + 50
	for _, c := range courses {
		name := "latency/" + c.name
		b.report.AddSeries(name+"/p50", fromCommit(results[c.name], 0.5), "ms", nil)
		var bar *figures.Bar
		if c.wakeUp == nobody {
			bar = figures.AtMost(pollBound)
		}
		b.report.AddSeries(name+"/p99", fromCommit(results[c.name], 0.99), "ms", bar)
		b.report.AddSeries(name+"/p99-from-schedule", collect(results[c.name], func(d delays) float64 {
			return figures.Quantile(d.fromSchedule, 0.99)
		}), "ms", nil)
	}
	relay, hand := results[courses[0].name], results[courses[1].name]
	for _, q := range []float64{0.5, 0.99} {
		b.report.AddSeries(fmt.Sprintf("latency/commit-to-publish/relay-to-hand/p%.0f", 100*q),
			figures.Ratios(fromCommit(relay, q), fromCommit(hand, q)), "ratio", nil)
	}
	return nil
}

func fromCommit(results []delays, q float64) figures.Series {
	return collect(results, func(d delays) float64 { return figures.Quantile(d.fromCommit, q) })
}

func (b *bench) onlyRelay(ctx context.Context, stream runspec.Stream) ([]*rig.Process, error) {
	relay, err := b.startRelay(ctx, stream)
	return []*rig.Process{relay}, err
}

func (b *bench) onlyListeningLoop(ctx context.Context, stream runspec.Stream) ([]*rig.Process, error) {
	loop, err := b.rig.StartLoop("hand-listen", limit.Spec{
		Stream: stream.Name, Prefix: stream.SubjectPrefix, Layout: limit.Transaction, Batch: b.plan.batch, Claimers: 1,
		Envelope: true, Listen: true, PollInterval: b.plan.pollInterval,
	})
	if err != nil {
		return nil, err
	}
	return []*rig.Process{loop}, sleep(ctx, time.Second) // It has no readiness: it connects and listens meanwhile.
}

func (b *bench) relayAndWorker(ctx context.Context, stream runspec.Stream) ([]*rig.Process, error) {
	relay, err := b.startRelay(ctx, stream)
	if err != nil {
		return nil, err
	}
	worker, err := b.startWorker(ctx, stream, pipelineOf(1))
	if err != nil {
		return nil, errors.Join(err, relay.Stop())
	}
	return []*rig.Process{relay, worker}, nil
}

// observe runs the open loop against one course.
func (b *bench) observe(ctx context.Context, c course, rate float64) (_ delays, err error) {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout+b.plan.latencyFor)
	defer cancel()
	stream, err := b.rig.Reset(ctx)
	if err != nil {
		return delays{}, err
	}
	processes, err := c.start(ctx, stream)
	if err != nil {
		return delays{}, err
	}
	defer func() {
		for _, process := range processes {
			err = errors.Join(err, process.Stop())
		}
	}()
	events := int(rate * b.plan.latencyFor.Seconds())
	producer, stop, err := b.producer(ctx, events, c.wakeUp)
	if err != nil {
		return delays{}, err
	}
	defer stop()
	neighbours, err := rig.WatchNeighbours()
	if err != nil {
		return delays{}, err
	}
	times, err := load.OpenLoop{
		Rate: rate, Events: events, Producers: producers, Seed: 1, Commit: producer.Commit,
	}.Run(ctx)
	if err != nil {
		return delays{}, err
	}
	others, err := neighbours.Cores()
	if err != nil {
		return delays{}, err
	}
	var ends map[uuid.UUID]time.Time
	if c.executes {
		ends, err = b.executionStarts(ctx, processes[len(processes)-1], events)
	} else {
		ends, err = b.publications(ctx, processes[0], stream.Name, events)
	}
	if err != nil {
		return delays{}, err
	}
	d, err := measure(times, producer.IDs, ends)
	d.others = others
	return d, err
}

// producer makes one with a pool of its own, whose connections are up. The caller ends it with stop.
func (b *bench) producer(ctx context.Context, events int, how wakeUp) (_ *load.Producer, stop func(), err error) {
	config := b.rig.Database.Config()
	config.MaxConns = producers + 1 // One for pings.
	config.MinConns = config.MaxConns
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, fmt.Errorf("make the producers' pool: %w", err)
	}
	if err := warm(ctx, pool); err != nil {
		pool.Close()
		return nil, nil, err
	}
	switch how {
	case nobody:
		return load.PlainInsert(pool, events, b.plan.payload), pool.Close, nil
	case eachCommit:
		ping := func() {
			if err := outbox.Ping(ctx, pool); err != nil {
				b.logf("ping: %v", err)
			}
		}
		return load.New(pool, events, b.plan.payload, ping), pool.Close, nil
	default:
		failed := outbox.OnPingError(func(err error) { b.logf("ping: %v", err) })
		pinger := outbox.NewPinger(pool, failed) //nolint:contextcheck // It ends with Close.
		return load.New(pool, events, b.plan.payload, pinger.Ping), func() { pinger.Close(); pool.Close() }, nil
	}
}

// warm makes the connections of a pool, which it would else make under the first events.
func warm(ctx context.Context, pool *pgxpool.Pool) error {
	held := make([]*pgxpool.Conn, 0, pool.Config().MaxConns)
	defer func() {
		for _, conn := range held {
			conn.Release()
		}
	}()
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return fmt.Errorf("connect the producers: %w", err)
		}
		held = append(held, conn)
	}
	return nil
}

// measure joins commits with their ends. A message may be in the stream before its commit returned to the producer:
// that counts as no time.
func measure(times []load.Committed, ids []uuid.UUID, ends map[uuid.UUID]time.Time) (delays, error) {
	d := delays{}
	for n, event := range times {
		end, ended := ends[ids[n]]
		if !ended {
			return delays{}, fmt.Errorf("event %s was committed and has no end", ids[n])
		}
		d.fromCommit = append(d.fromCommit, max(0, milliseconds(end.Sub(event.Done))))
		d.fromSchedule = append(d.fromSchedule, max(0, milliseconds(end.Sub(event.Scheduled))))
	}
	return d, nil
}

// publications waits until the stream has every event, and gives when the broker stored each.
func (b *bench) publications(ctx context.Context, process *rig.Process, name string, events int,
) (map[uuid.UUID]time.Time, error) {
	stream, err := b.rig.JetStream.Stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", name, err)
	}
	err = process.Await(ctx, "every event to be published", 20*time.Millisecond, func() (bool, error) {
		info, err := stream.Info(ctx)
		return err == nil && info.State.Msgs >= uint64(events), err
	})
	if err != nil {
		return nil, err
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{HeadersOnly: true})
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", name, err)
	}
	stored := make(map[uuid.UUID]time.Time, events)
	for len(stored) < events {
		batch, err := consumer.Fetch(min(1000, events-len(stored)), jetstream.FetchMaxWait(5*time.Second))
		if err != nil {
			return nil, fmt.Errorf("read stream %s: %w", name, err)
		}
		before := len(stored)
		for message := range batch.Messages() {
			id, err := uuid.Parse(message.Headers().Get(event.HeaderEventID))
			if err != nil {
				return nil, fmt.Errorf("read the event id of a message: %w", err)
			}
			metadata, err := message.Metadata()
			if err != nil {
				return nil, fmt.Errorf("read the time of message %s: %w", id, err)
			}
			stored[id] = metadata.Timestamp
		}
		if err := batch.Error(); err != nil {
			return nil, fmt.Errorf("read stream %s: %w", name, err)
		}
		if len(stored) == before {
			return nil, fmt.Errorf("stream %s: found %d events, want %d", name, before, events)
		}
	}
	return stored, nil
}

// executionStarts waits until every event has an execution, and gives when each began, by the database's clock.
func (b *bench) executionStarts(ctx context.Context, worker *rig.Process, events int) (map[uuid.UUID]time.Time, error) {
	err := worker.Await(ctx, "every execution to start", 100*time.Millisecond, func() (bool, error) {
		var started int
		err := b.rig.Database.QueryRow(ctx,
			"SELECT count(*) FROM relayops.pipeline_executions WHERE started_at IS NOT NULL").Scan(&started)
		return started >= events, err
	})
	if err != nil {
		return nil, err
	}
	rows, err := b.rig.Database.Query(ctx, "SELECT event_id, started_at FROM relayops.pipeline_executions")
	if err != nil {
		return nil, fmt.Errorf("read when executions started: %w", err)
	}
	starts := make(map[uuid.UUID]time.Time, events)
	var (
		id [16]byte
		at time.Time
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		starts[id] = at
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read when executions started: %w", err)
	}
	return starts, nil
}

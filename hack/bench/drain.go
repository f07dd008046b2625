package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/relayops/relayops/hack/bench/figures"
	"github.com/relayops/relayops/hack/bench/limit"
	"github.com/relayops/relayops/hack/bench/load"
	"github.com/relayops/relayops/hack/bench/rig"
	"github.com/relayops/relayops/internal/runspec"
)

// contender is a program that empties the outbox: the relay, or a loop written by hand.
type contender struct {
	name string
	// bare: its messages have no envelope.
	bare  bool
	start func(ctx context.Context, stream runspec.Stream) (*rig.Process, error)
}

// drained is one trial's result.
type drained struct {
	// perSecond is the rate in events/s.
	perSecond float64
	// loop, postgres and broker are CPU time for each event.
	loop, postgres, broker time.Duration
	// peak is the contender's VmHWM, in bytes; others the cores that neighbours kept busy.
	peak   int64
	others float64
}

// cost is the CPU time that everything together spends on an event. Where the cores are the limit it bounds the rate,
// and it depends less on neighbours than the rate does.
func (d drained) cost() time.Duration { return d.loop + d.postgres + d.broker }

func (d drained) neighbours() float64 { return d.others }

// relayDrain empties a backlog with the relay and with each hand-written loop, in turn.
func (b *bench) relayDrain(ctx context.Context) error {
	loops := b.handLoops()
	contenders := append(b.relays(), loops...)
	results := make(map[string][]drained, len(contenders))
	for range b.plan.rounds {
		for _, c := range contenders {
			result, err := undisturbed(b, func() (drained, error) { return b.drain(ctx, c) })
			if err != nil {
				return fmt.Errorf("drain with %s: %w", c.name, err)
			}
			b.logf("drain: %s %.0f events/s, %.0f us/event", c.name, result.perSecond, microseconds(result.cost()))
			results[c.name] = append(results[c.name], result)
		}
	}
	for _, c := range contenders {
		b.reportDrain(c.name, results[c.name])
	}
	relay := rates(results["relay"])
	best := slices.MaxFunc(whole(loops), func(x, y contender) int {
		if rates(results[x.name]).Median() < rates(results[y.name]).Median() {
			return -1
		}
		return 1
	})
	b.report.Add("relay-drain/batch", float64(b.plan.batch), "rows", nil)
	for _, c := range loops {
		b.report.AddSeries("relay-drain/relay-to-"+c.name, figures.Ratios(relay, rates(results[c.name])), "ratio", nil)
	}
	if before, measured := results[baselineRelay]; measured {
		b.report.AddSeries("relay-drain/relay-to-baseline", figures.Ratios(relay, rates(before)), "ratio", nil)
	}
	b.logf("drain: the best loop written by hand is %s", best.name)
	cost := func(d drained) float64 { return d.cost().Seconds() }
	b.report.AddSeries("relay-drain/best-hand-to-relay-cpu",
		figures.Ratios(collect(results[best.name], cost), collect(results["relay"], cost)), "ratio", nil)
	b.report.AddSeries("relay-drain/relay-to-best-hand", figures.Ratios(relay, rates(results[best.name])), "ratio",
		figures.AtLeast(0.8))
	return nil
}

func (b *bench) reportDrain(name string, results []drained) {
	b.report.AddSeries("relay-drain/"+name, rates(results), "events/s", nil)
	part := func(of string, value func(drained) float64, unit string) {
		b.report.Add("relay-drain/"+name+"/"+of, collect(results, value).Median(), unit, nil)
	}
	part("cpu", func(d drained) float64 { return microseconds(d.cost()) }, "us/event")
	part("cpu-of-the-loop", func(d drained) float64 { return microseconds(d.loop) }, "us/event")
	part("cpu-of-postgres", func(d drained) float64 { return microseconds(d.postgres) }, "us/event")
	part("cpu-of-the-broker", func(d drained) float64 { return microseconds(d.broker) }, "us/event")
	part("peak-memory", func(d drained) float64 { return mebibytes(d.peak) }, "MiB")
	part("neighbours", func(d drained) float64 { return d.others }, "cores")
}

func rates(results []drained) figures.Series {
	return collect(results, func(d drained) float64 { return d.perSecond })
}

func (b *bench) relayContender() contender {
	return contender{name: "relay", start: b.startRelay}
}

// relays are this checkout's relay, and that of the baseline if there is one.
func (b *bench) relays() []contender {
	relays := []contender{b.relayContender()}
	if b.options.baseline != "" {
		start := func(ctx context.Context, stream runspec.Stream) (*rig.Process, error) {
			return b.startRelayOf(ctx, rig.Baseline, stream)
		}
		relays = append(relays, contender{name: baselineRelay, start: start})
	}
	return relays
}

const baselineRelay = "relay-baseline"

// whole are the loops whose messages a consumer can use.
func whole(loops []contender) []contender {
	return slices.DeleteFunc(slices.Clone(loops), func(c contender) bool { return c.bare })
}

// handLoops are the loops that the relay is compared with. All record stream and sequence as the relay does. Those
// called bare send an id and the payload, and no envelope, which is less than a consumer needs: a limit to look at, and
// not what the bar is about.
func (b *bench) handLoops() []contender {
	kinds := []limit.Spec{
		{Layout: limit.Transaction, Claimers: 1, Envelope: true},
		{Layout: limit.Transaction, Claimers: 2, Envelope: true},
		{Layout: limit.Transaction, Claimers: 2},
		{Layout: limit.Lease, Claimers: 2, Envelope: true},
	}
	if b.plan.quick {
		kinds = kinds[1:2]
	}
	contenders := make([]contender, len(kinds))
	for i, kind := range kinds {
		name := fmt.Sprintf("hand-%s-%d", kind.Layout, kind.Claimers)
		if !kind.Envelope {
			name += "-bare"
		}
		start := func(_ context.Context, stream runspec.Stream) (*rig.Process, error) {
			kind.Stream, kind.Prefix, kind.Batch = stream.Name, stream.SubjectPrefix, b.plan.batch
			return b.rig.StartLoop(name, kind)
		}
		contenders[i] = contender{name: name, bare: !kind.Envelope, start: start}
	}
	return contenders
}

// drain is drainOf the plan's backlog.
func (b *bench) drain(ctx context.Context, c contender) (drained, error) {
	return b.drainOf(ctx, c, b.plan.backlog)
}

// drainOf fills the outbox, starts the contender, and measures from the first message in the stream to the last row
// marked: starting up and connecting are not part of it.
func (b *bench) drainOf(ctx context.Context, c contender, events int) (_ drained, err error) {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	stream, err := b.rig.Reset(ctx)
	if err != nil {
		return drained{}, err
	}
	if _, err := load.Backlog(ctx, b.rig.Database, events, b.plan.payload); err != nil {
		return drained{}, err
	}
	if err := load.Settle(ctx, b.rig.Database); err != nil {
		return drained{}, err
	}
	if err := b.rig.Checkpoint(ctx); err != nil {
		return drained{}, err
	}
	neighbours, err := rig.WatchNeighbours()
	if err != nil {
		return drained{}, err
	}
	servers, err := b.serverTimes()
	if err != nil {
		return drained{}, err
	}
	process, err := c.start(ctx, stream)
	if err != nil {
		return drained{}, err
	}
	defer func() { err = errors.Join(err, process.Stop()) }()
	result, err := b.watchDrain(ctx, process, stream.Name, events)
	if err != nil {
		return drained{}, err
	}
	if err := b.chargeDrain(&result, process, servers, events); err != nil {
		return drained{}, err
	}
	result.others, err = neighbours.Cores()
	return result, err
}

func (b *bench) watchDrain(ctx context.Context, process *rig.Process, name string, events int) (drained, error) {
	stream, err := b.rig.JetStream.Stream(ctx, name)
	if err != nil {
		return drained{}, fmt.Errorf("stream %s: %w", name, err)
	}
	var first time.Time
	err = process.Await(ctx, "every event to be published", 25*time.Millisecond, func() (bool, error) {
		info, err := stream.Info(ctx)
		if err != nil {
			return false, err
		}
		first = info.State.FirstTime
		return info.State.LastSeq >= uint64(events), nil
	})
	if err != nil {
		return drained{}, err
	}
	if err := b.awaitMarks(ctx, process); err != nil {
		return drained{}, err
	}
	took := time.Since(first)
	return drained{perSecond: float64(events) / took.Seconds()}, b.checkDrained(ctx, events)
}

// awaitMarks waits until no row is pending.
func (b *bench) awaitMarks(ctx context.Context, process *rig.Process) error {
	return process.Await(ctx, "every row to be marked", 2*time.Millisecond, func() (bool, error) {
		var pending bool
		err := b.rig.Database.QueryRow(ctx,
			"SELECT EXISTS (SELECT FROM relayops.outbox_events WHERE status = 'PENDING')").Scan(&pending)
		return !pending, err
	})
}

// checkDrained makes sure that what was measured was done: every row has its place in the stream.
func (b *bench) checkDrained(ctx context.Context, events int) error {
	var done int
	err := b.rig.Database.QueryRow(ctx, `SELECT count(DISTINCT stream_seq) FROM relayops.outbox_events
		WHERE status = 'PUBLISHED' AND stream IS NOT NULL`).Scan(&done)
	if err != nil {
		return fmt.Errorf("count published rows: %w", err)
	}
	if done != events {
		return fmt.Errorf("found %d rows with a place in the stream, want %d", done, events)
	}
	return nil
}

type serverTimes struct{ postgres, broker time.Duration }

func (b *bench) serverTimes() (serverTimes, error) {
	postgres, err := rig.TreeCPU(b.rig.PostgresPID())
	if err != nil {
		return serverTimes{}, err
	}
	broker, err := rig.CPUOf(b.rig.BrokerPID())
	return serverTimes{postgres, broker}, err
}

func (b *bench) chargeDrain(result *drained, process *rig.Process, before serverTimes, events int) error {
	after, err := b.serverTimes()
	if err != nil {
		return err
	}
	loop, err := rig.CPUOf(process.PID())
	if err != nil {
		return err
	}
	memory, err := rig.MemoryOf(process.PID())
	if err != nil {
		return err
	}
	result.loop = loop / time.Duration(events)
	result.postgres = (after.postgres - before.postgres) / time.Duration(events)
	result.broker = (after.broker - before.broker) / time.Duration(events)
	result.peak = memory.Peak
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/relayops/relayops/hack/bench/figures"
	"github.com/relayops/relayops/hack/bench/rig"
)

// idleCost watches a relay and a worker with nothing to do: their queries, counted by the database, and their CPU.
func (b *bench) idleCost(ctx context.Context) (err error) {
	stream, err := b.rig.Reset(ctx)
	if err != nil {
		return err
	}
	if err := b.rig.CountQueries(ctx, true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.rig.CountQueries(context.WithoutCancel(ctx), false)) }()
	relay, err := b.startRelay(ctx, stream)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, relay.Stop()) }()
	worker, err := b.startWorker(ctx, stream, pipelineOf(1))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, worker.Stop()) }()
	if err := sleep(ctx, b.plan.settleFor); err != nil {
		return err
	}
	before, err := cpuTimes(relay, worker)
	if err != nil {
		return err
	}
	if err := b.rig.ForgetQueries(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := sleep(ctx, b.plan.idleFor); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := cpuTimes(relay, worker)
	if err != nil {
		return err
	}
	for i, program := range []string{"relay", "worker"} {
		share := (after[i] - before[i]).Seconds() / took.Seconds()
		b.report.Add("idle/"+program+"/cpu", 100*share, "%-of-a-core", figures.AtMost(1))
	}
	return b.reportIdleQueries(ctx, took)
}

func (b *bench) reportIdleQueries(ctx context.Context, took time.Duration) error {
	if !b.rig.CountsQueries {
		b.logf("idle: PostgreSQL has no pg_stat_statements (package postgresql-contrib): queries are not counted")
		return nil
	}
	// A time of k intervals, and a part of one, holds at most k + 1 polls.
	polls := math.Floor(took.Seconds()/b.plan.pollInterval.Seconds()) + 1
	for _, program := range []struct{ name, role string }{{"relay", rig.RoleRelay}, {"worker", rig.RoleWorker}} {
		queries, err := b.rig.Queries(ctx, program.role)
		if err != nil {
			return err
		}
		total := 0.0
		for _, query := range queries {
			total += float64(query.Calls)
			b.logf("idle: %s, %d calls of %s", program.name, query.Calls, query.Text)
		}
		b.report.Add("idle/"+program.name+"/queries", total/took.Seconds(), "queries/s", nil)
		if program.role == rig.RoleRelay {
			b.report.Add("idle/relay/queries-per-poll", total/polls, "queries", figures.AtMost(1))
		}
	}
	return nil
}

func cpuTimes(processes ...*rig.Process) ([]time.Duration, error) {
	times := make([]time.Duration, len(processes))
	for i, process := range processes {
		var err error
		if times[i], err = rig.CPUOf(process.PID()); err != nil {
			return nil, fmt.Errorf("%s: %w", process.Name, err)
		}
	}
	return times, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

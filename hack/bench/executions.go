package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relayops/relayops/hack/bench/figures"
	"github.com/relayops/relayops/hack/bench/load"
	"github.com/relayops/relayops/hack/bench/rig"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/runspec"
)

// executed is one trial of the worker.
type executed struct {
	perSecond        float64
	worker, postgres time.Duration
	peak             int64
	others           float64
}

func (e executed) neighbours() float64 { return e.others }

// executions measures the worker alone, for pipelines of 1 and of 3 nodes, the relay alone on as many events, and both
// together from commit to finished execution.
func (b *bench) executions(ctx context.Context) error {
	one, three, relay, together := []executed{}, []executed{}, []drained{}, []executed{}
	for range b.plan.rounds {
		for _, trial := range []struct {
			name  string
			nodes int
			into  *[]executed
			run   func(context.Context, engine.Definition) (executed, error)
		}{
			{"1 node", 1, &one, b.executeBacklog}, {"3 nodes", 3, &three, b.executeBacklog},
			{"end to end", 1, &together, b.endToEnd},
		} {
			result, err := undisturbed(b, func() (executed, error) { return trial.run(ctx, pipelineOf(trial.nodes)) })
			if err != nil {
				return fmt.Errorf("%s: %w", trial.name, err)
			}
			b.logf("worker: %s %.0f executions/s", trial.name, result.perSecond)
			*trial.into = append(*trial.into, result)
		}
		alone, err := undisturbed(b, func() (drained, error) {
			return b.drainOf(ctx, b.relayContender(), b.plan.executions)
		})
		if err != nil {
			return fmt.Errorf("relay alone: %w", err)
		}
		relay = append(relay, alone)
	}
	b.reportExecutions("worker/1-node", one)
	b.reportExecutions("worker/3-nodes", three)
	b.reportExecutions("end-to-end/1-node", together)
	b.report.AddSeries("end-to-end/relay-alone", rates(relay), "events/s", nil)
	// Two programs that share the cores can reach what their costs add up to.
	shared := make(figures.Series, len(one))
	for i := range shared {
		shared[i] = 1 / (1/relay[i].perSecond + 1/one[i].perSecond)
	}
	b.report.AddSeries("end-to-end/ratio-to-shared-cores", figures.Ratios(executionRates(together), shared), "ratio", nil)
	return nil
}

func executionRates(results []executed) figures.Series {
	return collect(results, func(e executed) float64 { return e.perSecond })
}

func (b *bench) reportExecutions(name string, results []executed) {
	b.report.AddSeries(name, executionRates(results), "executions/s", nil)
	part := func(of string, value func(executed) float64, unit string) {
		b.report.Add(name+"/"+of, collect(results, value).Median(), unit, nil)
	}
	part("cpu-of-the-worker", func(e executed) float64 { return microseconds(e.worker) }, "us/execution")
	part("cpu-of-postgres", func(e executed) float64 { return microseconds(e.postgres) }, "us/execution")
	part("peak-memory-of-the-worker", func(e executed) float64 { return mebibytes(e.peak) }, "MiB")
	part("neighbours", func(e executed) float64 { return e.others }, "cores")
}

// executeBacklog has the relay publish a backlog, stops it, and lets a worker execute it.
func (b *bench) executeBacklog(ctx context.Context, pipeline engine.Definition) (executed, error) {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	stream, err := b.rig.Reset(ctx)
	if err != nil {
		return executed{}, err
	}
	if _, err := load.Backlog(ctx, b.rig.Database, b.plan.executions, b.plan.payload); err != nil {
		return executed{}, err
	}
	if err := b.publishAll(ctx, stream); err != nil {
		return executed{}, err
	}
	return b.watchExecutions(ctx, stream, pipeline, func() (time.Time, error) { return time.Time{}, nil })
}

// endToEnd commits a backlog in one transaction while relay and worker idle, and measures from that commit on.
func (b *bench) endToEnd(ctx context.Context, pipeline engine.Definition) (_ executed, err error) {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	stream, err := b.rig.Reset(ctx)
	if err != nil {
		return executed{}, err
	}
	relay, err := b.startRelay(ctx, stream)
	if err != nil {
		return executed{}, err
	}
	defer func() { err = errors.Join(err, relay.Stop()) }()
	return b.watchExecutions(ctx, stream, pipeline, func() (time.Time, error) {
		return load.Backlog(ctx, b.rig.Database, b.plan.executions, b.plan.payload)
	})
}

func (b *bench) publishAll(ctx context.Context, stream runspec.Stream) error {
	relay, err := b.startRelay(ctx, stream)
	if err != nil {
		return err
	}
	return errors.Join(b.awaitMarks(ctx, relay), relay.Stop())
}

// watchExecutions runs a worker, calls commit, which gives the time to count from or zero for the first execution's
// start, and waits until every event has succeeded.
func (b *bench) watchExecutions(ctx context.Context, stream runspec.Stream, pipeline engine.Definition,
	commit func() (time.Time, error),
) (_ executed, err error) {
	neighbours, err := rig.WatchNeighbours()
	if err != nil {
		return executed{}, err
	}
	servers, err := b.serverTimes()
	if err != nil {
		return executed{}, err
	}
	worker, err := b.startWorker(ctx, stream, pipeline)
	if err != nil {
		return executed{}, err
	}
	defer func() { err = errors.Join(err, worker.Stop()) }()
	began, err := commit()
	if err != nil {
		return executed{}, err
	}
	result, err := b.awaitExecutions(ctx, worker, began)
	if err != nil {
		return executed{}, err
	}
	after, err := b.serverTimes()
	if err != nil {
		return executed{}, err
	}
	cpu, err := rig.CPUOf(worker.PID())
	if err != nil {
		return executed{}, err
	}
	memory, err := rig.MemoryOf(worker.PID())
	if err != nil {
		return executed{}, err
	}
	events := time.Duration(b.plan.executions)
	result.worker, result.postgres, result.peak = cpu/events, (after.postgres-servers.postgres)/events, memory.Peak
	result.others, err = neighbours.Cores()
	return result, err
}

func (b *bench) awaitExecutions(ctx context.Context, worker *rig.Process, began time.Time) (executed, error) {
	// Polled seldom: counting costs the database what is being measured.
	err := worker.Await(ctx, "every execution to succeed", 250*time.Millisecond, func() (bool, error) {
		var succeeded int
		err := b.rig.Database.QueryRow(ctx,
			"SELECT count(*) FROM relayops.pipeline_executions WHERE state = 'SUCCEEDED'").Scan(&succeeded)
		return succeeded >= b.plan.executions, err
	})
	if err != nil {
		return executed{}, err
	}
	var first, last time.Time
	err = b.rig.Database.QueryRow(ctx,
		"SELECT min(started_at), max(finished_at) FROM relayops.pipeline_executions").Scan(&first, &last)
	if err != nil {
		return executed{}, fmt.Errorf("read the executions' times: %w", err)
	}
	if began.IsZero() {
		began = first
	}
	return executed{perSecond: float64(b.plan.executions) / last.Sub(began).Seconds()}, nil
}

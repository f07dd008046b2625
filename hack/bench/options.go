package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// trialTimeout bounds every single trial, so that a contender that hangs ends the run.
const trialTimeout = 2 * time.Minute

// plan is how much is measured.
type plan struct {
	quick bool
	// names of the benchmarks to run.
	names []string
	// rounds is how often each contender runs.
	rounds int
	// backlog is how many events a drain has, payload their size in bytes, batch the rows of one claim, claimers the
	// relay's claims in flight.
	backlog, payload, batch, claimers int
	// executions is how many events the worker's benchmarks have, concurrency its executions at once.
	executions, concurrency int
	// rate, latencyFor and latencyRounds are the open loop of the latencies; memoryRate and memoryFor that of the
	// memory benchmark.
	rate          float64
	latencyFor    time.Duration
	latencyRounds int
	memoryRate    float64
	memoryFor     time.Duration
	// pollInterval is the relay's; idleFor how long an empty outbox is watched.
	// It is left alone for settleFor before that.
	pollInterval, idleFor, settleFor time.Duration
}

type options struct {
	plan
	json       string
	check      bool
	syncAlways bool
	profileDir string
	// baseline is another checkout of this module, whose relay and worker run in turn with this one's.
	baseline string
	// quiet is how many cores others may keep busy during a trial, in the mean; above it the trial is taken again.
	quiet float64
}

func fullPlan() plan {
	return plan{
		rounds: 5, backlog: 60_000, payload: 1024, batch: 500, claimers: 2,
		executions: 20_000, concurrency: 4,
		rate: 200, latencyFor: 20 * time.Second, latencyRounds: 2, memoryRate: 1000, memoryFor: 30 * time.Second,
		pollInterval: 2 * time.Second, idleFor: 30 * time.Second, settleFor: 5 * time.Second,
	}
}

func quickPlan() plan {
	p := fullPlan()
	p.quick, p.rounds, p.latencyRounds = true, 1, 1
	p.backlog, p.executions = 20_000, 1_000
	p.latencyFor, p.memoryFor, p.idleFor, p.settleFor = 3*time.Second, 4*time.Second, 6*time.Second, time.Second
	return p
}

func parseOptions(args []string, usage io.Writer) (options, error) {
	o := options{plan: fullPlan()}
	if slices.Contains(args, "-quick") || slices.Contains(args, "--quick") {
		o.plan = quickPlan()
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.BoolVar(&o.quick, "quick", o.quick, "a short run, below a minute: for a look, not for a judgement")
	names := flags.String("run", strings.Join(benchmarkNames(), ","), "the benchmarks to run")
	flags.StringVar(&o.json, "json", "", "also write the report as JSON to this file (- is stdout, instead of the lines)")
	flags.BoolVar(&o.check, "check", false, "end with status 1 if a bar is missed")
	flags.BoolVar(&o.syncAlways, "sync-always", false, "a broker that syncs to disk before each acknowledgement")
	flags.StringVar(&o.baseline, "baseline", "", "directory of another checkout: its relay and worker take part, too")
	flags.StringVar(&o.profileDir, "profile", "", "write CPU and heap profiles of relay and worker to this directory")
	flags.Float64Var(&o.quiet, "quiet", 0.3, "take a trial again, at most twice, if others kept more cores busy than this")
	flags.IntVar(&o.rounds, "rounds", o.rounds, "how often each contender runs")
	flags.IntVar(&o.backlog, "backlog", o.backlog, "events of a drain")
	flags.IntVar(&o.payload, "payload", o.payload, "bytes of a payload")
	flags.IntVar(&o.batch, "batch", o.batch, "rows of one claim")
	flags.IntVar(&o.claimers, "claimers", o.claimers, "the relay's claims in flight")
	flags.IntVar(&o.executions, "executions", o.executions, "events of a worker's trial")
	flags.IntVar(&o.concurrency, "concurrency", o.concurrency, "the worker's executions at once")
	flags.DurationVar(&o.pollInterval, "poll", o.pollInterval, "the relay's poll interval")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("arguments: found %q, allowed: flags only", flags.Args())
	}
	o.names = strings.Split(*names, ",")
	for _, name := range o.names {
		if !slices.Contains(benchmarkNames(), name) {
			return options{}, fmt.Errorf("-run: found %q, allowed: %s", name, strings.Join(benchmarkNames(), ", "))
		}
	}
	for _, number := range []struct {
		flag       string
		value, max int
	}{
		{"rounds", o.rounds, 100}, {"backlog", o.backlog, 1_000_000}, {"payload", o.payload, 1 << 20},
		{"batch", o.batch, 10_000}, {"claimers", o.claimers, 16},
		{"executions", o.executions, 1_000_000}, {"concurrency", o.concurrency, 1000},
	} {
		if number.value < 1 || number.value > number.max {
			return options{}, fmt.Errorf("-%s: found %d, allowed: 1 to %d", number.flag, number.value, number.max)
		}
	}
	return o, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/relayops/relayops/hack/bench/figures"
	"github.com/relayops/relayops/hack/bench/rig"
)

// bench is one run.
type bench struct {
	plan    plan
	options options
	rig     *rig.Rig
	report  *figures.Report
	logs    io.Writer
}

// benchmark is one of the things that can be measured.
type benchmark struct {
	name string
	run  func(*bench, context.Context) error
	// programs that it runs.
	programs []string
}

func benchmarks() []benchmark {
	return []benchmark{
		{"relay-drain", (*bench).relayDrain, []string{"relay"}},
		{"latency", (*bench).latency, []string{"relay", "worker"}},
		{"idle", (*bench).idleCost, []string{"relay", "worker"}},
		{"memory", (*bench).memory, []string{"relay", "worker"}},
		{"executions", (*bench).executions, []string{"relay", "worker"}},
	}
}

func benchmarkNames() []string {
	var names []string
	for _, benchmark := range benchmarks() {
		names = append(names, benchmark.name)
	}
	return names
}

// programsOf gives the programs that benchmarks need, each once.
func programsOf(names []string) []string {
	var programs []string
	for _, benchmark := range benchmarks() {
		if slices.Contains(names, benchmark.name) {
			programs = append(programs, benchmark.programs...)
		}
	}
	slices.Sort(programs)
	return slices.Compact(programs)
}

func run(ctx context.Context, args []string, out, logs io.Writer) (err error) {
	options, err := parseOptions(args, logs)
	if err != nil {
		return err
	}
	lines := out
	if options.json == "-" {
		lines = io.Discard
	}
	b := &bench{plan: options.plan, options: options, report: figures.NewReport(lines), logs: logs}
	b.report.Command = strings.Join(append([]string{"go run ./hack/bench"}, args...), " ")
	b.report.Began, b.report.Quick = time.Now().UTC().Truncate(time.Second), options.quick
	b.logf("set up: build, PostgreSQL, nats-server")
	if b.rig, err = rig.Start(ctx, rig.Options{
		SyncAlways: options.syncAlways, Programs: programsOf(options.names),
		Baseline: options.baseline, ProfileDir: options.profileDir,
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.rig.Close()) }() //nolint:contextcheck // Also after ctx has ended.
	if b.report.Machine, err = b.describeMachine(ctx); err != nil {
		return err
	}
	for _, benchmark := range benchmarks() {
		if !slices.Contains(options.names, benchmark.name) {
			continue
		}
		b.logf("%s", benchmark.name)
		if err := benchmark.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", benchmark.name, err)
		}
	}
	b.report.Seconds = time.Since(b.report.Began).Round(time.Second).Seconds()
	if err := b.report.Err(); err != nil {
		return fmt.Errorf("print the figures: %w", err)
	}
	if err := b.writeJSON(out); err != nil {
		return err
	}
	if options.check && len(b.report.Missed()) > 0 {
		return errMissed
	}
	return nil
}

func (b *bench) writeJSON(out io.Writer) error {
	switch b.options.json {
	case "":
		return nil
	case "-":
		return b.report.WriteJSON(out)
	}
	file, err := os.Create(b.options.json)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return errors.Join(b.report.WriteJSON(file), file.Close())
}

func (b *bench) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(b.logs, "%s bench: %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

func (b *bench) describeMachine(ctx context.Context) (figures.Machine, error) {
	machine := figures.Machine{Cores: runtime.NumCPU(), Go: runtime.Version(), NATS: b.rig.NATSVersion()}
	if err := b.rig.Database.QueryRow(ctx, "SHOW server_version").Scan(&machine.PostgreSQL); err != nil {
		return machine, fmt.Errorf("ask PostgreSQL for its version: %w", err)
	}
	err := rig.DescribeHardware(&machine)
	return machine, err
}

func collect[T any](results []T, value func(T) float64) figures.Series {
	series := make(figures.Series, len(results))
	for i, result := range results {
		series[i] = value(result)
	}
	return series
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func mebibytes(bytes int64) float64        { return float64(bytes) / (1 << 20) }

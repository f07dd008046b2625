package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/relayops/relayops/hack/bench/load"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node"
)

func TestPipelinesOfTheBenchmarkAreValid(t *testing.T) {
	for _, nodes := range []int{1, 3, 10} {
		definition := pipelineOf(nodes)
		if len(definition.Nodes) != nodes {
			t.Errorf("found %d nodes, want %d", len(definition.Nodes), nodes)
		}
		if _, err := engine.Compile(definition, node.Types()); err != nil {
			t.Errorf("%d nodes: %v", nodes, err)
		}
	}
}

func TestOptions(t *testing.T) {
	full, err := parseOptions(nil, io.Discard)
	if err != nil || full.quick || len(full.names) != len(benchmarks()) {
		t.Errorf("found %+v, %v, want the full plan", full, err)
	}
	quick, err := parseOptions([]string{"-quick", "-batch", "7", "-run", "idle"}, io.Discard)
	if err != nil || !quick.quick || quick.backlog >= full.backlog || quick.batch != 7 || len(quick.names) != 1 {
		t.Errorf("found %+v, %v, want the quick plan with a batch of 7 and one benchmark", quick, err)
	}
	for _, wrong := range [][]string{{"-run", "nothing"}, {"-rounds", "0"}, {"-batch", "10001"}, {"idle"}} {
		if _, err := parseOptions(wrong, io.Discard); err == nil || !strings.Contains(err.Error(), "allowed") {
			t.Errorf("%v: found error %v, want one that says what is allowed", wrong, err)
		}
	}
}

func TestProgramsAreThoseOfTheChosenBenchmarks(t *testing.T) {
	for names, want := range map[string]string{"relay-drain": "relay", "idle,memory": "relay,worker"} {
		if got := strings.Join(programsOf(strings.Split(names, ",")), ","); got != want {
			t.Errorf("%s: found %s, want %s", names, got, want)
		}
	}
}

func TestLatencyCountsFromCommitAndFromSchedule(t *testing.T) {
	at := time.Unix(1000, 0)
	early, late, missing := uuid.New(), uuid.New(), uuid.New()
	times := []load.Committed{
		{Scheduled: at, Done: at.Add(30 * time.Millisecond)},
		{Scheduled: at, Done: at.Add(10 * time.Millisecond)},
	}
	ends := map[uuid.UUID]time.Time{early: at.Add(29 * time.Millisecond), late: at.Add(15 * time.Millisecond)}
	d, err := measure(times, []uuid.UUID{early, late}, ends)
	if err != nil {
		t.Fatal(err)
	}
	if d.fromCommit[0] != 0 || d.fromCommit[1] != 5 || d.fromSchedule[0] != 29 || d.fromSchedule[1] != 15 {
		t.Errorf("found %v and %v, want [0 5] and [29 15]", d.fromCommit, d.fromSchedule)
	}
	if _, err := measure(times, []uuid.UUID{early, missing}, ends); err == nil {
		t.Error("an event without an end gave no error: it would be missing from the percentiles")
	}
}

type noisy float64

func (n noisy) neighbours() float64 { return float64(n) }

func TestADisturbedTrialIsTakenAgainAFewTimes(t *testing.T) {
	b := &bench{options: options{quiet: 0.3}, logs: io.Discard}
	for _, c := range []struct {
		neighbours []noisy
		want       noisy
		trials     int
	}{
		{[]noisy{0.1}, 0.1, 1}, {[]noisy{0.9, 0.2}, 0.2, 2}, {[]noisy{0.9, 0.8, 0.7, 0.1}, 0.7, tries},
	} {
		taken := 0
		got, err := undisturbed(b, func() (noisy, error) {
			taken++
			return c.neighbours[taken-1], nil
		})
		if err != nil || got != c.want || taken != c.trials {
			t.Errorf("%v: found %v after %d trials, want %v after %d", c.neighbours, got, taken, c.want, c.trials)
		}
	}
	broken := errors.New("broken")
	if _, err := undisturbed(b, func() (noisy, error) { return 2, broken }); !errors.Is(err, broken) {
		t.Errorf("found %v, want the trial's error", err)
	}
}

func TestAnEndedRunStopsBeforeItStartsServers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, []string{"-run", "relay-drain"}, io.Discard, io.Discard); err == nil {
		t.Error("a run that was cancelled gave no error")
	}
}

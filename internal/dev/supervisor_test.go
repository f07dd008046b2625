package dev

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/relayops/relayops/internal/runspec"
)

// fakeDaemons record what runs.
type fakeDaemons struct {
	mu      sync.Mutex
	events  []string
	running map[string]int
	// drain is how long a daemon takes to stop; fail makes a daemon return an error at once, so many times.
	drain time.Duration
	fail  map[string]int
}

func newFake() *fakeDaemons { return &fakeDaemons{running: map[string]int{}, fail: map[string]int{}} }

func (f *fakeDaemons) daemons() Daemons {
	return Daemons{
		Relay: func(ctx context.Context, spec runspec.Relay, _ *slog.Logger) error {
			return f.run(ctx, spec.Key, spec.Key)
		},
		Worker: func(ctx context.Context, spec runspec.Worker, _ *slog.Logger) error {
			return f.run(ctx, spec.PipelineKey, spec.PipelineKey+"@"+spec.Revision)
		},
	}
}

func (f *fakeDaemons) run(ctx context.Context, key, label string) error {
	if f.note("start "+label, key, 1) > 1 {
		f.note("TWO OF "+label, key, 0)
	}
	defer f.note("stop "+label, key, -1)
	if f.failing(key) {
		return errors.New("gave up")
	}
	<-ctx.Done()
	time.Sleep(f.drain)
	return nil
}

func (f *fakeDaemons) note(text, key string, delta int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, text)
	f.running[key] += delta
	return f.running[key]
}

func (f *fakeDaemons) failing(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail[key] == 0 {
		return false
	}
	f.fail[key]--
	return true
}

func (f *fakeDaemons) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.events)
}

// eventually waits until the events are as wanted, in any order.
func (f *fakeDaemons) eventually(t *testing.T, want ...string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		got := f.seen()
		if slices.Equal(sorted(got), sorted(want)) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("events = %v, want %v", got, want)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }

func desiredOf(labels ...string) Desired {
	var d Desired
	for _, label := range labels {
		key, revision, isWorker := strings.Cut(label, "@")
		if isWorker {
			d.Workers = append(d.Workers, runspec.Worker{PipelineKey: key, Revision: revision})
		} else {
			d.Relays = append(d.Relays, runspec.Relay{Key: key})
		}
	}
	return d
}

func startSupervisor(t *testing.T, fake *fakeDaemons) (apply func(...string) []change, stop func()) {
	t.Helper()
	s := newSupervisor(fake.daemons(), slog.New(slog.DiscardHandler))
	s.restartAfter = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); s.wait() })
	return func(labels ...string) []change {
		t.Helper()
		changed, err := s.apply(ctx, desiredOf(labels...))
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}, func() { cancel(); s.wait() }
}

func TestAChangedPipelineIsDrainedBeforeItsNextRevisionStarts(t *testing.T) {
	fake := newFake()
	fake.drain = 30 * time.Millisecond
	apply, stop := startSupervisor(t, fake)
	apply("shop", "post@1")
	fake.eventually(t, "start shop", "start post@1")
	changed := apply("shop", "post@2")
	if len(changed) != 1 || changed[0].String() != "changed pipeline post: revision 1 → 2" {
		t.Errorf("changes = %v", changed)
	}
	fake.eventually(t, "start shop", "start post@1", "stop post@1", "start post@2")
	events := fake.seen()
	if slices.Index(events, "stop post@1") > slices.Index(events, "start post@2") {
		t.Errorf("events = %v: revision 2 started before revision 1 had drained", events)
	}
	stop()
	fake.eventually(t, "start shop", "start post@1", "stop post@1", "start post@2", "stop post@2", "stop shop")
}

func TestAddedAndRemovedPipelines(t *testing.T) {
	fake := newFake()
	apply, _ := startSupervisor(t, fake)
	apply("shop", "post@1")
	fake.eventually(t, "start shop", "start post@1")
	apply("shop", "other@1")
	fake.eventually(t, "start shop", "start post@1", "stop post@1", "start other@1")
	// It comes back in the slot that it had.
	apply("shop", "post@1", "other@1")
	fake.eventually(t, "start shop", "start post@1", "stop post@1", "start other@1", "start post@1")
}

func TestOnlyTheNewestOfManyQuickChangesNeedsToRun(t *testing.T) {
	fake := newFake()
	fake.drain = 20 * time.Millisecond
	apply, stop := startSupervisor(t, fake)
	for _, revision := range []string{"1", "2", "3", "4", "5"} {
		apply("post@" + revision)
	}
	deadline := time.Now().Add(10 * time.Second)
	for !slices.Contains(fake.seen(), "start post@5") {
		if time.Now().After(deadline) {
			t.Fatalf("events = %v, want post@5 to run", fake.seen())
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	for _, event := range fake.seen() {
		if strings.HasPrefix(event, "TWO OF") {
			t.Errorf("events = %v: two at once", fake.seen())
		}
	}
	if last := fake.seen()[len(fake.seen())-1]; last != "stop post@5" {
		t.Errorf("last event = %q, want the stop of the newest", last)
	}
}

func TestAnUnchangedDesireTouchesNothing(t *testing.T) {
	fake := newFake()
	apply, _ := startSupervisor(t, fake)
	apply("shop", "post@1")
	fake.eventually(t, "start shop", "start post@1")
	if changed := apply("shop", "post@1"); len(changed) != 0 {
		t.Errorf("changes = %v, want none", changed)
	}
	fake.eventually(t, "start shop", "start post@1")
}

func TestADaemonThatGivesUpIsStartedAgain(t *testing.T) {
	fake := newFake()
	fake.fail["post"] = 2
	apply, _ := startSupervisor(t, fake)
	apply("post@1")
	fake.eventually(t, "start post@1", "stop post@1", "start post@1", "stop post@1", "start post@1")
}

func TestAPanicOfOneDaemonIsItsOwn(t *testing.T) {
	fake := newFake()
	daemons := fake.daemons()
	var once sync.Once
	run := daemons.Worker
	daemons.Worker = func(ctx context.Context, spec runspec.Worker, log *slog.Logger) error {
		once.Do(func() { panic("a mistake") })
		return run(ctx, spec, log)
	}
	s := newSupervisor(daemons, slog.New(slog.DiscardHandler))
	s.restartAfter = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer s.wait()
	defer cancel()
	if _, err := s.apply(ctx, desiredOf("shop", "post@1")); err != nil {
		t.Fatal(err)
	}
	fake.eventually(t, "start shop", "start post@1")
}

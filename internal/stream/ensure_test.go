package stream

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/testenv"
)

func wantedStream() runspec.Stream {
	return runspec.Stream{
		Name: "EVENTS", SubjectPrefix: "events", Replicas: 1, MaxBytes: 64 << 20, MaxAge: runspec.Duration(24 * time.Hour),
		DuplicateWindow: runspec.Duration(2 * time.Minute), MaxMessageBytes: 1 << 20, InstanceKey: "main",
	}
}

func connected(t *testing.T) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(testenv.NATS(t).Connect())
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func ensure(t *testing.T, js jetstream.JetStream, spec runspec.Stream, want Applied) State {
	t.Helper()
	state, err := Ensure(t.Context(), js, spec)
	if err != nil {
		t.Fatal(err)
	}
	if state.Applied != want {
		t.Fatalf("%s (%v), want %s", state.Applied, state.Changes, want)
	}
	return state
}

func TestStreamIsMadeAsWanted(t *testing.T) {
	js := connected(t)
	config := ensure(t, js, wantedStream(), Created).Info.Config
	if config.Storage != jetstream.FileStorage || config.Retention != jetstream.LimitsPolicy ||
		config.Discard != jetstream.DiscardNew || !config.AllowDirect || config.MaxBytes != 64<<20 ||
		config.MaxAge != 24*time.Hour || config.Duplicates != 2*time.Minute || config.MaxMsgSize != 1<<20 ||
		config.Metadata[MetadataInstance] != "main" || config.Subjects[0] != "events.*.*" {
		t.Errorf("config: %+v", config)
	}
	ensure(t, js, wantedStream(), Unchanged)
}

func TestStreamDriftIsRepaired(t *testing.T) {
	js := connected(t)
	created := ensure(t, js, wantedStream(), Created)
	drifted := created.Info.Config
	drifted.Discard, drifted.MaxBytes, drifted.AllowDirect = jetstream.DiscardOld, 1<<20, false
	drifted.MaxMsgs, drifted.Compression = 10, jetstream.S2Compression
	if _, err := js.UpdateStream(t.Context(), drifted); err != nil {
		t.Fatal(err)
	}
	state := ensure(t, js, wantedStream(), Updated)
	if len(state.Changes) != 4 {
		t.Errorf("changes: %v, want 4", state.Changes)
	}
	config := state.Info.Config
	if config.Discard != jetstream.DiscardNew || config.MaxBytes != 64<<20 || !config.AllowDirect || config.MaxMsgs != -1 {
		t.Errorf("config: %+v", config)
	}
	if config.Compression != jetstream.S2Compression {
		t.Error("a field that is not RelayOps' business was changed")
	}
	ensure(t, js, wantedStream(), Unchanged)
	changed := wantedStream()
	changed.MaxAge, changed.SubjectPrefix = runspec.Duration(time.Hour), "shop.events"
	ensure(t, js, changed, Updated)
}

func TestImmutableStreamDriftIsNamed(t *testing.T) {
	js := connected(t)
	existing := desiredStream(wantedStream(), nil)
	existing.Storage, existing.Retention = jetstream.MemoryStorage, jetstream.WorkQueuePolicy
	if _, err := js.CreateStream(t.Context(), existing); err != nil {
		t.Fatal(err)
	}
	_, err := Ensure(t.Context(), js, wantedStream())
	var conflict *ConflictError
	if !errors.As(err, &conflict) || len(conflict.Fields) != 2 || conflict.Unmarked {
		t.Fatalf("error: %v", err)
	}
	if f := conflict.Fields[0]; f.Field != "storage" || f.Found != "Memory" || f.Wanted != "File" {
		t.Errorf("field: %v", f)
	}
	still, err := js.Stream(t.Context(), "EVENTS")
	if err != nil || still.CachedInfo().Config.Storage != jetstream.MemoryStorage {
		t.Errorf("the stream was touched: %v", err)
	}
}

func TestForeignStream(t *testing.T) {
	js := connected(t)
	ensure(t, js, wantedStream(), Created)
	other := wantedStream()
	other.InstanceKey = "other"
	_, err := Ensure(t.Context(), js, other)
	var owned *OwnedByOtherError
	if !errors.As(err, &owned) || owned.Owner != "main" || owned.Wanted != "other" {
		t.Fatalf("error: %v", err)
	}
}

func TestUnmarkedStream(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*jetstream.StreamConfig)
		field  string
	}{
		"compatible":     {func(c *jetstream.StreamConfig) { c.MaxBytes, c.MaxAge = 1<<20, time.Hour }, ""},
		"other subjects": {func(c *jetstream.StreamConfig) { c.Subjects = []string{"events.>"} }, "subjects"},
		"keeps longer":   {func(c *jetstream.StreamConfig) { c.MaxAge = 0 }, "max_age"},
	} {
		t.Run(name, func(t *testing.T) {
			js := connected(t)
			existing := desiredStream(wantedStream(), nil)
			existing.Metadata = map[string]string{"team": "shop"}
			test.change(&existing)
			if _, err := js.CreateStream(t.Context(), existing); err != nil {
				t.Fatal(err)
			}
			if test.field == "" {
				state := ensure(t, js, wantedStream(), Adopted)
				if state.Info.Config.Metadata["team"] != "shop" || state.Info.Config.Metadata[MetadataInstance] != "main" {
					t.Errorf("metadata: %v", state.Info.Config.Metadata)
				}
				return
			}
			_, err := Ensure(t.Context(), js, wantedStream())
			var conflict *ConflictError
			if !errors.As(err, &conflict) || !conflict.Unmarked || conflict.Fields[0].Field != test.field {
				t.Fatalf("error: %v", err)
			}
		})
	}
}

func TestOverlap(t *testing.T) {
	js := connected(t)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OLD", Subjects: []string{"events.>"}}); err != nil {
		t.Fatal(err)
	}
	_, err := Ensure(t.Context(), js, wantedStream())
	var overlap *OverlapError
	if !errors.As(err, &overlap) || overlap.Other != "OLD" {
		t.Fatalf("error: %v", err)
	}
}

func TestManyEnsureAtOnce(t *testing.T) {
	js := connected(t)
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			if _, err := Ensure(context.Background(), js, wantedStream()); err != nil {
				t.Error(err)
			}
			if _, err := EnsureConsumer(context.Background(), js, wantedConsumer()); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
}

func TestVersion(t *testing.T) {
	for version, old := range map[string]bool{
		"2.9.25": true, "2.10.0": false, "2.11.3": false, "3.0.0": false, "1.4.1": true, "2.10.0-beta.1": false, "dev": false, "": false,
	} {
		err := checkVersion(version)
		var tooOld *VersionError
		if errors.As(err, &tooOld) != old {
			t.Errorf("version %q: %v, too old: %t", version, err, old)
		}
	}
}

func wantedConsumer() Consumer {
	return Consumer{
		Stream: "EVENTS", Name: "orders", PipelineKey: "main/shop/orders",
		FilterSubjects: []string{"events.*.A", "events.*.B", "events.*.A"}, AckWait: 30 * time.Second, MaxDeliver: 20,
		MaxAckPending: 100, StartSequence: 3,
	}
}

func ensureConsumerAs(t *testing.T, js jetstream.JetStream, spec Consumer, want Applied) ConsumerState {
	t.Helper()
	state, err := EnsureConsumer(t.Context(), js, spec)
	if err != nil {
		t.Fatal(err)
	}
	if state.Applied != want {
		t.Fatalf("%s (%v), want %s", state.Applied, state.Changes, want)
	}
	return state
}

func publish(t *testing.T, js jetstream.JetStream, n int) {
	t.Helper()
	for range n {
		if _, err := js.Publish(t.Context(), "events.acme.A", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConsumerBeginsWhereItIsTold(t *testing.T) {
	js := connected(t)
	ensure(t, js, wantedStream(), Created)
	publish(t, js, 5)
	state := ensureConsumerAs(t, js, wantedConsumer(), Created)
	if state.StartReset || state.StartSequence() != 3 {
		t.Errorf("starts at %d, reset %t", state.StartSequence(), state.StartReset)
	}
	msg, err := state.Consumer.Next(jetstream.FetchMaxWait(5 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if meta, err := msg.Metadata(); err != nil || meta.Sequence.Stream != 3 {
		t.Errorf("first message: %+v, %v", meta, err)
	}
	// The start of an existing consumer stays.
	later := wantedConsumer()
	later.StartSequence = 5
	if state := ensureConsumerAs(t, js, later, Unchanged); state.StartSequence() != 3 {
		t.Errorf("starts at %d, want 3", state.StartSequence())
	}
}

// A stream that was made anew ends before the recorded start: the consumer must not wait for sequences far away.
func TestConsumerBeyondTheStreamsEnd(t *testing.T) {
	js := connected(t)
	ensure(t, js, wantedStream(), Created)
	publish(t, js, 2)
	spec := wantedConsumer()
	spec.StartSequence = 4
	state := ensureConsumerAs(t, js, spec, Created)
	if !state.StartReset || state.StartSequence() != 1 {
		t.Errorf("starts at %d, reset %t, want 1", state.StartSequence(), state.StartReset)
	}
	next := wantedConsumer()
	next.Name = "next" // Begins with the message that comes next.
	if state := ensureConsumerAs(t, js, next, Created); state.StartReset || state.StartSequence() != 3 {
		t.Errorf("starts at %d, reset %t, want 3", state.StartSequence(), state.StartReset)
	}
}

func TestConsumerDriftIsRepaired(t *testing.T) {
	js := connected(t)
	ensure(t, js, wantedStream(), Created)
	ensureConsumerAs(t, js, wantedConsumer(), Created)
	ensureConsumerAs(t, js, wantedConsumer(), Unchanged)
	changed := wantedConsumer()
	changed.MaxAckPending, changed.FilterSubjects = 500, []string{"events.acme.A"}
	state := ensureConsumerAs(t, js, changed, Updated)
	if len(state.Changes) != 2 || state.Info.Config.MaxAckPending != 500 {
		t.Errorf("changes: %v", state.Changes)
	}
	ensureConsumerAs(t, js, changed, Unchanged)
}

func TestForeignAndConflictingConsumers(t *testing.T) {
	js := connected(t)
	ensure(t, js, wantedStream(), Created)
	ensureConsumerAs(t, js, wantedConsumer(), Created)
	other := wantedConsumer()
	other.PipelineKey = "main/shop/invoices"
	_, err := EnsureConsumer(t.Context(), js, other)
	var owned *OwnedByOtherError
	if !errors.As(err, &owned) || owned.Owner != "main/shop/orders" {
		t.Errorf("foreign: %v", err)
	}
	for name, config := range map[string]jetstream.ConsumerConfig{
		"ack_policy":      {Durable: "c1", AckPolicy: jetstream.AckAllPolicy, FilterSubjects: wantedConsumer().FilterSubjects[:2]},
		"filter_subjects": {Durable: "c2", AckPolicy: jetstream.AckExplicitPolicy},
	} {
		if _, err := js.CreateConsumer(t.Context(), "EVENTS", config); err != nil {
			t.Fatal(err)
		}
		spec := wantedConsumer()
		spec.Name = config.Durable
		_, err := EnsureConsumer(t.Context(), js, spec)
		var conflict *ConflictError
		if !errors.As(err, &conflict) || conflict.Fields[0].Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := js.CreatePushConsumer(t.Context(), "EVENTS", jetstream.ConsumerConfig{
		Durable: "push", DeliverSubject: "d", AckPolicy: jetstream.AckExplicitPolicy,
	}); err != nil {
		t.Fatal(err)
	}
	push := wantedConsumer()
	push.Name = "push"
	var conflict *ConflictError
	if _, err := EnsureConsumer(t.Context(), js, push); !errors.As(err, &conflict) {
		t.Errorf("push consumer: %v", err)
	}
	missing := wantedConsumer()
	missing.Stream = "NONE"
	if _, err := EnsureConsumer(t.Context(), js, missing); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("missing stream: %v", err)
	}
}

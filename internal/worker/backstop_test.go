package worker

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/stream"
)

// metric reads the sum of a counter or gauge of ours.
func (w *world) metric(name string) (sum float64) {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// anew deletes the stream and makes it anew.
func (w *world) anew() {
	w.t.Helper()
	if err := w.js.DeleteStream(w.t.Context(), testStream); err != nil {
		w.t.Fatal(err)
	}
	if _, err := stream.Ensure(w.t.Context(), w.js, w.spec.Stream); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) awaitLetter(seq uint64, org string, want int) {
	w.t.Helper()
	w.eventually("dead letters", func() string {
		if w.count("dead_letters", "code = 'schema_invalid' AND stream_seq = $1 AND org_id = $2", seq, org) != want {
			return "missing"
		}
		return ""
	})
}

// Guarantee 8: permissions are given by subject, so headers speak for no other organisation, and for no other type.
func TestHeadersSpeakForTheirSubjectOnly(t *testing.T) {
	w := newWorld(t, pureDefinition)
	w.start()
	d := w.foreign("globex", "OrderConfirmed", `{}`)
	headers, body := event.Encode(d, "")
	claimed := w.publishRaw("acme", "OrderConfirmed", headers, body)
	own := w.emit("globex", "OrderConfirmed", `{}`)
	w.awaitState("globex", own, "SUCCEEDED")
	w.awaitLetter(claimed, "acme", 1)
	equal(t, "what was claimed", w.stateOf("globex", d.ID), "")
	equal(t, "letters of globex", w.count("dead_letters", "org_id = 'globex'"), 0)
}

// The same holds for what the sweep finds.
func TestSweepHoldsHeadersAgainstTheSubject(t *testing.T) {
	w := newWorld(t, pureDefinition, givesUp, func(s *runspec.Worker) {
		s.SweepInterval = runspec.Duration(100 * time.Millisecond)
	})
	w.subscribe()
	d := w.foreign("globex", "OrderConfirmed", `{}`)
	headers, body := event.Encode(d, "")
	claimed := w.publishRaw("acme", "OrderConfirmed", headers, body)
	w.exhaust()
	w.start()
	w.awaitLetter(claimed, "acme", 1)
	equal(t, "what was claimed", w.stateOf("globex", d.ID), "")
}

func TestOrgOfSubject(t *testing.T) {
	for subject, want := range map[string]string{
		"events.acme.OrderConfirmed": "acme", "events.a%2Eb.X": "a.b", "events.%41.X": "", "events..X": "",
		"other.acme.X": "", "events": "", "eventsacme.X": "",
	} {
		equal(t, subject, orgOfSubject("events", subject), want)
	}
}

// A stream that was made anew, and is longer already than what was read of the former one, is read from its beginning;
// and a message that cannot be decoded is recorded although another one had its sequence.
func TestLongerStreamMadeAnewIsRead(t *testing.T) {
	w := newWorld(t, pureDefinition, func(s *runspec.Worker) { s.SweepInterval = runspec.Duration(100 * time.Millisecond) })
	junk := map[string][]string{event.HeaderEventID: {"no id"}}
	running := w.start(ownRegistry)
	seq := w.publishRaw("acme", "OrderConfirmed", junk, nil)
	last := w.publish(w.foreign("acme", "OrderConfirmed", `{}`))
	w.awaitLetter(seq, "acme", 1)
	w.eventually("the cursor", func() string {
		if query[uint64](w, "SELECT swept_seq FROM relayops.pipeline_subscriptions") != last {
			return "behind"
		}
		return ""
	})
	running.stop()

	w.anew()
	w.publishRaw("acme", "OrderConfirmed", junk, nil)
	first := w.foreign("acme", "OrderConfirmed", `{}`)
	w.publish(first)
	second := w.foreign("acme", "OrderConfirmed", `{}`)
	w.publish(second)
	w.start()
	w.awaitState("acme", first.ID, "SUCCEEDED")
	w.awaitState("acme", second.ID, "SUCCEEDED")
	w.awaitLetter(seq, "acme", 2)
	equal(t, "start", query[uint64](w, "SELECT start_seq FROM relayops.pipeline_subscriptions"), 1)
}

// A consumer that begins beyond the stream's end does not draw the cursor past messages that are yet to come.
func TestSweepEndsWithTheStream(t *testing.T) {
	w := newWorld(t, pureDefinition, func(s *runspec.Worker) { s.SweepInterval = runspec.Duration(100 * time.Millisecond) })
	w.subscribe()
	consumer, err := w.js.Consumer(t.Context(), testStream, w.spec.Consumer)
	if err != nil {
		t.Fatal(err)
	}
	config := consumer.CachedInfo().Config
	if err := w.js.DeleteConsumer(t.Context(), testStream, w.spec.Consumer); err != nil {
		t.Fatal(err)
	}
	config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, 1000
	if _, err := w.js.CreateConsumer(t.Context(), testStream, config); err != nil {
		t.Fatal(err)
	}
	w.start()
	for range 3 {
		d := w.foreign("acme", "OrderConfirmed", `{}`)
		w.publish(d)
		w.awaitState("acme", d.ID, "SUCCEEDED")
	}
}

// The database's clock may be ahead of the broker's.
func TestSubscriptionFromATimeOfAnotherClock(t *testing.T) {
	w := newWorld(t, pureDefinition)
	old := w.emit("acme", "OrderConfirmed", `{}`)
	d := w.commit("acme", "OrderConfirmed", `{}`, nil)
	if _, err := w.db.Exec(t.Context(), `UPDATE relayops.outbox_events SET created_at = now() + interval '3 minutes'
		WHERE event_id = $1`, d.ID); err != nil {
		t.Fatal(err)
	}
	start := query[time.Time](w, "SELECT now() + interval '2 minutes'")
	w.publish(d)
	w.spec.Subscription.StartFrom, w.spec.Subscription.StartTime = "Time", &start
	w.start()
	w.awaitState("acme", d.ID, "SUCCEEDED")
	w.awaitSettled()
	equal(t, "before the time", w.stateOf("acme", old), "")
}

// Types and organisations that are named twice neither keep the sweep from reading nor differ from the consumer's.
func TestSweepReadsWhatTheConsumerReads(t *testing.T) {
	w := newWorld(t, pureDefinition, func(s *runspec.Worker) {
		s.SweepInterval = runspec.Duration(100 * time.Millisecond)
		s.Subscription.EventTypes = []string{"OrderConfirmed", "OrderCancelled", "OrderConfirmed"}
		s.Subscription.Orgs = []string{"globex", "acme", "acme"}
	})
	running := w.start()
	id := w.emit("acme", "OrderConfirmed", `{}`)
	w.awaitState("acme", id, "SUCCEEDED")
	w.eventually("the cursor", func() string {
		if query[uint64](w, "SELECT swept_seq FROM relayops.pipeline_subscriptions") != 1 {
			return "behind"
		}
		return ""
	})
	consumer, err := w.js.Consumer(context.Background(), testStream, w.spec.Consumer)
	if err != nil {
		t.Fatal(err)
	}
	if got := running.filterSubjects(); !slices.Equal(got, consumer.CachedInfo().Config.FilterSubjects) {
		t.Errorf("the sweep reads %v, the consumer %v", got, consumer.CachedInfo().Config.FilterSubjects)
	}
	equal(t, "failures", w.metric("relayops_sweep_failures_total"), 0)
	if age := float64(time.Now().Unix()) - w.metric("relayops_sweep_last_success_timestamp_seconds"); age > 600 {
		t.Errorf("the last success was %v seconds ago", age)
	}
}

// The first sweep of a row that fails is worth a warning, and each is counted.
func TestFailedSweepIsToldOf(t *testing.T) {
	w := newWorld(t, pureDefinition, func(s *runspec.Worker) { s.SweepInterval = runspec.Duration(50 * time.Millisecond) })
	running := w.start()
	w.eventually("readiness", func() string {
		_, reason := running.Ready()
		return reason
	})
	if _, err := w.db.Exec(t.Context(), `ALTER TABLE relayops.pipeline_subscriptions RENAME TO elsewhere`); err != nil {
		t.Fatal(err)
	}
	w.eventually("failures", func() string {
		if w.metric("relayops_sweep_failures_total") < 2 {
			return "not counted"
		}
		return ""
	})
	equal(t, "warnings", strings.Count(w.logs.String(), "sweep not finished"), 1)
}

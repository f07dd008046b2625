package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/runspec"
)

// givesUp makes a broker that gives up after two deliveries.
func givesUp(s *runspec.Worker) {
	s.MaxAttempts, s.MaxDeliver = 1, 2
	s.LeaseDuration = runspec.Duration(time.Second)
}

// subscribe has a suspended worker make subscription and consumer, and stops it.
func (w *world) subscribe() {
	w.t.Helper()
	suspended := w.spec
	suspended.Suspended = true
	running := w.start(ownRegistry, func(c *Config) { c.Spec = suspended })
	w.eventually("the consumer", func() string {
		if running.topology.Load() == nil {
			return "missing"
		}
		return ""
	})
	running.stop()
}

// exhaust uses the deliveries of all messages up, as workers do that crash before they claim.
func (w *world) exhaust() {
	w.t.Helper()
	consumer, err := w.js.Consumer(context.Background(), testStream, w.spec.Consumer)
	if err != nil {
		w.t.Fatal(err)
	}
	w.eventually("the end of deliveries", func() string {
		batch, err := consumer.Fetch(10, jetstream.FetchMaxWait(100*time.Millisecond))
		if err != nil {
			return err.Error()
		}
		for msg := range batch.Messages() {
			if err := msg.Nak(); err != nil {
				return err.Error()
			}
		}
		info, err := consumer.Info(context.Background())
		if err != nil {
			return err.Error()
		}
		if info.NumPending > 0 || info.NumAckPending > 0 {
			return fmt.Sprintf("%d pending, %d in hand", info.NumPending, info.NumAckPending)
		}
		return ""
	})
}

// Guarantee 1: messages that the broker gave up on are recorded, each as what it is, also when nobody heard of it.
func TestSweepAccountsForWhatTheBrokerGaveUp(t *testing.T) {
	w := newWorld(t, pureDefinition, givesUp, func(s *runspec.Worker) {
		s.SweepInterval = runspec.Duration(200 * time.Millisecond)
		s.Subscription.Orgs = []string{"acme"}
	})
	w.subscribe()
	done := w.commit("acme", "OrderConfirmed", `{}`, nil)
	running := w.start(ownRegistry)
	w.publish(done)
	w.awaitState("acme", done.ID, "SUCCEEDED")
	running.stop()

	fromOutbox := w.emit("acme", "OrderConfirmed", `{}`)
	foreign := w.foreign("acme", "OrderConfirmed", `{"a":  1}`)
	w.publish(foreign)
	bad := w.publishRaw("acme", "OrderConfirmed", map[string][]string{event.HeaderOrg: {"acme"}}, []byte(`{}`))
	headers, body := event.Encode(w.foreign("acme", "OrderConfirmed", `{"a": 1}`), "")
	tampered := w.publishRaw("acme", "OrderConfirmed", headers, append(body, ' '))
	conflict := *done
	conflict.PayloadSHA256 = event.PayloadHash([]byte(`{"other": 1}`))
	conflict.Payload = json.RawMessage(`{"other": 1}`)
	conflicting := w.publish(&conflict)
	w.exhaust() // Nobody listens to the advisories.

	running = w.start()
	w.awaitState("acme", fromOutbox, "SUCCEEDED")
	w.awaitState("acme", foreign.ID, "SUCCEEDED")
	for seq, code := range map[uint64]string{bad: "schema_invalid", tampered: "schema_invalid", conflicting: "payload_conflict"} {
		w.eventually(fmt.Sprintf("dead letter of message %d", seq), func() string {
			if w.count("dead_letters", "code = $1 AND stream_seq = $2 AND execution_id IS NULL", code, seq) != 1 {
				return "missing"
			}
			return ""
		})
	}
	w.eventually("the cursor", func() string {
		if swept := query[uint64](w, "SELECT swept_seq FROM relayops.pipeline_subscriptions"); swept != conflicting {
			return fmt.Sprint(swept)
		}
		return ""
	})
	time.Sleep(500 * time.Millisecond) // Several sweeps more: nothing happens twice.
	running.stop()
	equal(t, "executions", w.count("pipeline_executions", "state = 'SUCCEEDED' AND attempt = 1"), 3)
	equal(t, "steps", w.count("step_executions", "true"), 6)
	equal(t, "dead letters", w.count("dead_letters", "true"), 3)
	equal(t, "kept", w.count("event_payloads", "event_id = $1", foreign.ID), 1)
	equal(t, "kept at all", w.count("event_payloads", "true"), 1)
}

// An advisory is acted on at once, long before the next sweep.
func TestAdvisoryIsActedOn(t *testing.T) {
	w := newWorld(t, pureDefinition, givesUp)
	suspended := w.spec
	suspended.Suspended = true
	w.start(func(c *Config) { c.Spec = suspended })
	w.eventually("the consumer", func() string {
		if _, err := w.js.Consumer(context.Background(), testStream, w.spec.Consumer); err != nil {
			return err.Error()
		}
		return ""
	})
	id := w.emit("acme", "OrderConfirmed", `{}`)
	w.exhaust()
	w.awaitState("acme", id, "RETRY")
	equal(t, "attempts", w.count("pipeline_executions", "attempt = 0 AND due_at <= now()"), 1)
	w.start(ownRegistry)
	w.awaitState("acme", id, "SUCCEEDED")
}

// A message that the sweep settled and that is delivered all the same runs once.
func TestSweptMessageRunsOnce(t *testing.T) {
	service := newERP(t, ok)
	w := newWorld(t, erpDefinition(service.URL), givesUp, func(s *runspec.Worker) {
		s.SweepInterval = runspec.Duration(100 * time.Millisecond)
	})
	w.subscribe()
	d := w.commit("acme", "OrderConfirmed", `{"number": "A-1"}`, nil)
	w.publish(d)
	w.exhaust()
	w.start()
	w.publish(d)
	w.awaitState("acme", d.ID, "SUCCEEDED")
	w.awaitSettled()
	time.Sleep(300 * time.Millisecond)
	equal(t, "calls", len(service.callsFor("A-1")), 1)
}

func TestSuspendedWorkerAccumulates(t *testing.T) {
	w := newWorld(t, pureDefinition)
	suspended := w.spec
	suspended.Suspended = true
	running := w.start(ownRegistry, func(c *Config) { c.Spec = suspended })
	w.eventually("readiness", func() string {
		_, reason := running.Ready()
		return reason
	})
	equal(t, "state", running.Status().State, StateSuspended)
	w.backlog(3, "-1 second")
	id := w.emit("acme", "OrderConfirmed", `{}`)
	time.Sleep(300 * time.Millisecond)
	equal(t, "new execution", w.stateOf("acme", id), "")
	equal(t, "due executions", w.count("pipeline_executions", "state = 'RETRY'"), 3)
	running.stop()
	w.start()
	w.awaitState("acme", id, "SUCCEEDED")
}

// A consumer that somebody deleted, and a stream that was made anew, are found again.
func TestConsumerIsMadeAnew(t *testing.T) {
	w := newWorld(t, pureDefinition)
	w.start()
	first := w.emit("acme", "OrderConfirmed", `{}`)
	w.awaitState("acme", first, "SUCCEEDED")
	if err := w.js.DeleteConsumer(t.Context(), testStream, w.spec.Consumer); err != nil {
		t.Fatal(err)
	}
	second := w.emit("acme", "OrderConfirmed", `{}`)
	w.awaitState("acme", second, "SUCCEEDED")
	if err := w.js.DeleteStream(t.Context(), testStream); err != nil {
		t.Fatal(err)
	}
	w.eventually("the stream", func() string {
		_, err := w.js.CreateStream(t.Context(), jetstream.StreamConfig{
			Name: testStream, Subjects: []string{"events.*.*"}, AllowDirect: true, Discard: jetstream.DiscardNew,
		})
		if err != nil {
			return err.Error()
		}
		return ""
	})
	third := w.emit("acme", "OrderConfirmed", `{}`)
	w.awaitState("acme", third, "SUCCEEDED")
	equal(t, "attempts of each", w.count("pipeline_executions", "attempt = 1 AND fencing_token = 1"), 3)
}

func TestSubscriptionFromATime(t *testing.T) {
	w := newWorld(t, pureDefinition)
	old := w.emit("acme", "OrderConfirmed", `{}`)
	time.Sleep(20 * time.Millisecond)
	start := query[time.Time](w, "SELECT clock_timestamp()")
	time.Sleep(20 * time.Millisecond)
	fresh := w.emit("acme", "OrderConfirmed", `{}`)
	w.spec.Subscription.StartFrom, w.spec.Subscription.StartTime = "Time", &start
	running := w.start()
	w.awaitState("acme", fresh, "SUCCEEDED")
	w.awaitSettled()
	equal(t, "before the time", w.stateOf("acme", old), "")
	equal(t, "start sequence", running.Status().StartSequence, 1)
	equal(t, "from position", running.Status().FromPosition, 2)
}

// The broker's floor may stay below a message that it gave up on; what was delivered long ago is recorded all the same.
func TestSweepReachesBeyondWorkInHand(t *testing.T) {
	w := newWorld(t, pureDefinition, givesUp, func(s *runspec.Worker) {
		s.SweepInterval = runspec.Duration(100 * time.Millisecond)
		s.LeaseDuration = runspec.Duration(400 * time.Millisecond)
	})
	w.subscribe()
	w.publish(w.foreign("acme", "OrderConfirmed", `{}`))
	given := w.foreign("acme", "OrderConfirmed", `{}`)
	w.publish(given)
	began := time.Now()
	consumer, err := w.js.Consumer(t.Context(), testStream, w.spec.Consumer)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := consumer.Fetch(2)
	if err != nil {
		t.Fatal(err)
	}
	held := <-batch.Messages()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for pause(ctx, 50*time.Millisecond) {
			_ = held.InProgress() // The test ends with the broker.
		}
	}()
	if err := (<-batch.Messages()).Nak(); err != nil {
		t.Fatal(err)
	}
	again, err := consumer.Next()
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Nak(); err != nil {
		t.Fatal(err)
	}
	// The broker gives it up at the next pull, and nobody listens to its advisory.
	if _, err := consumer.Next(jetstream.FetchMaxWait(100 * time.Millisecond)); err == nil {
		t.Fatal("a third delivery")
	}
	w.start()
	w.awaitState("acme", given.ID, "SUCCEEDED")
	if took := time.Since(began); took < time.Second {
		t.Errorf("put into the ledger after %v: the broker might still have delivered it", took)
	}
}

func TestSweepGoesThroughManyMessages(t *testing.T) {
	w := newWorld(t, pureDefinition, func(s *runspec.Worker) {
		s.SweepInterval = runspec.Duration(100 * time.Millisecond)
		s.Concurrency = 16
		s.Subscription.Orgs = []string{"acme"}
	})
	w.start()
	const messages = 2*sweepChunk + 100
	for i := range messages {
		org := "acme"
		if i%10 != 0 {
			org = "globex"
		}
		w.publish(w.foreign(org, "OrderConfirmed", `{}`))
	}
	last := w.publish(w.foreign("acme", "OrderConfirmed", `{}`))
	w.eventually("the cursor", func() string {
		if swept := query[uint64](w, "SELECT swept_seq FROM relayops.pipeline_subscriptions"); swept != last {
			return fmt.Sprint(swept)
		}
		return ""
	})
	equal(t, "executions", w.count("pipeline_executions", "state = 'SUCCEEDED' AND attempt = 1"), messages/10+1)
}

package conditions_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relayops/relayops/internal/conditions"
	"github.com/relayops/relayops/internal/relay"
	"github.com/relayops/relayops/internal/worker"
)

func (s scenario) result(before []metav1.Condition, at time.Time) conditions.Result {
	observed := s.observed
	observed.Generation = 7
	if s.pipeline {
		return conditions.Pipeline(before, observed, at)
	}
	return conditions.OutboxRelay(before, observed, at)
}

func short(conditions []metav1.Condition, kind string) string {
	for _, one := range conditions {
		if one.Type == kind {
			return string(one.Status) + "/" + one.Reason
		}
	}
	return ""
}

func messageOf(conditions []metav1.Condition, kind string) string {
	for _, one := range conditions {
		if one.Type == kind {
			return one.Message
		}
	}
	return ""
}

func TestConditions(t *testing.T) {
	for _, one := range scenarios() {
		t.Run(one.name, func(t *testing.T) {
			result := one.result(one.before, now)
			if got := short(result.Conditions, "Ready"); got != one.ready {
				t.Errorf("Ready: found %s, want %s", got, one.ready)
			}
			if got := messageOf(result.Conditions, "Ready"); got == "" || one.message != "" && got != one.message {
				t.Errorf("Ready: found the message %q, want %q", got, one.message)
			}
			for _, other := range one.others {
				kind, want, _ := strings.Cut(other, "=")
				if got := short(result.Conditions, kind); got != want {
					t.Errorf("%s: found %q, want %q", kind, got, want)
				}
			}
			if result.Event == nil || result.Event.Type+" "+result.Event.Reason != one.event ||
				result.Event.Message != messageOf(result.Conditions, "Ready") {
				t.Errorf("found the Event %+v, want %s", result.Event, one.event)
			}
			for _, condition := range result.Conditions {
				if condition.ObservedGeneration != 7 {
					t.Errorf("%s: found the generation %d, want 7", condition.Type, condition.ObservedGeneration)
				}
			}
		})
	}
}

// What is found again is neither written nor told again: lastTransitionTime is of the change of a status.
func TestSteadyStateChangesNothing(t *testing.T) {
	for _, one := range scenarios() {
		t.Run(one.name, func(t *testing.T) {
			first := one.result(one.before, now)
			again := one.result(first.Conditions, now.Add(time.Minute))
			if !slices.Equal(first.Conditions, again.Conditions) {
				t.Errorf("found\n%+v\nafter\n%+v", again.Conditions, first.Conditions)
			}
			if again.Event != nil {
				t.Errorf("found the Event %+v again", again.Event)
			}
		})
	}
}

func TestTransitions(t *testing.T) {
	find := func(name string) scenario {
		all := scenarios()
		return all[slices.IndexFunc(all, func(s scenario) bool { return s.name == name })]
	}
	at := now.Add(1500 * time.Millisecond)
	for _, one := range []struct {
		from, to    string
		event       string
		transitions []string // types whose time is that of the change
	}{
		{"running", "the database is away", "Warning DatabaseUnreachable",
			[]string{"Available", "DatabaseReachable", "Ready", "Reconciling", "StreamReady"}},
		{"the database is away", "running", "Normal Running",
			[]string{"Available", "DatabaseReachable", "Ready", "StreamReady"}},
		// Another reason why it is not ready is told too; the time is that of the status.
		{"the database is away", "a stream of somebody else", "Warning StreamConflict",
			[]string{"DatabaseReachable", "Progressing", "Stalled", "StreamReady"}},
		{"running", "suspended", "", nil},
		{"no Deployment yet", "a Deployment that its controller has not seen", "",
			[]string{"Available", "DatabaseReachable", "Progressing", "StreamReady"}},
	} {
		t.Run(one.from+" → "+one.to, func(t *testing.T) {
			before := find(one.from).result(nil, began).Conditions
			result := find(one.to).result(before, at)
			if got := eventText(result.Event); got != one.event {
				t.Errorf("found the Event %q, want %q", got, one.event)
			}
			var changed []string
			for _, condition := range result.Conditions {
				switch condition.LastTransitionTime.Time {
				case began:
				case now.Add(time.Second): // whole seconds, as they are stored
					changed = append(changed, condition.Type)
				default:
					t.Errorf("%s: found the time %s", condition.Type, condition.LastTransitionTime)
				}
			}
			slices.Sort(changed)
			if !slices.Equal(changed, one.transitions) {
				t.Errorf("found transitions of %v, want %v", changed, one.transitions)
			}
		})
	}
}

func eventText(event *conditions.Event) string {
	if event == nil {
		return ""
	}
	return event.Type + " " + event.Reason
}

// The schema's default is no observation: its time is no time, and what follows is told.
func TestTheDefaultIsNoObservation(t *testing.T) {
	before := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionUnknown, Reason: "Pending"}}
	result := conditions.OutboxRelay(before, conditions.Observed{Generation: 1, Replicas: 1}, now)
	if got := result.Conditions[0]; got.Type != "Ready" || got.Status != metav1.ConditionUnknown || !got.LastTransitionTime.Time.Equal(now) {
		t.Errorf("found %+v; want Ready of now first", got)
	}
	if got := eventText(result.Event); got != "Normal RollingOut" {
		t.Errorf("found the Event %q", got)
	}
}

func TestConditionsOfOthersAreKept(t *testing.T) {
	other := metav1.Condition{Type: "example.com/Approved", Status: metav1.ConditionTrue, Reason: "ByHand"}
	result := conditions.OutboxRelay([]metav1.Condition{other}, conditions.Observed{Generation: 1, Replicas: 1}, now)
	if !slices.Contains(result.Conditions, other) {
		t.Errorf("found %+v without %s", result.Conditions, other.Type)
	}
}

// daemonReasons are all that relays and workers say.
func daemonReasons() []string {
	var reasons []string
	for _, reason := range relay.Reasons() {
		reasons = append(reasons, string(reason))
	}
	for _, reason := range worker.Reasons() {
		reasons = append(reasons, string(reason))
	}
	return reasons
}

// Whatever a relay or a worker says is a condition, and names its server.
func TestEveryReasonOfTheDaemonsIsKnown(t *testing.T) {
	if relay.StatePaused != "Paused" || worker.StatePaused != "Paused" || worker.StateDraining != "Draining" {
		t.Errorf("found the states %s, %s, %s", relay.StatePaused, worker.StatePaused, worker.StateDraining)
	}
	for _, reason := range daemonReasons() {
		observed := conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0), Daemon: paused(reason, "")}
		result := conditions.OutboxRelay(nil, observed, now).Conditions
		ready, database, stream := short(result, "Ready"), short(result, "DatabaseReachable"), short(result, "StreamReady")
		switch {
		case reason == "Starting":
			if ready != "Unknown/RollingOut" {
				t.Errorf("%s: found Ready=%s", reason, ready)
			}
		case ready == "False/Paused":
			t.Errorf("%s: found Ready=%s: the reason is not known", reason, ready)
		case reason == "InternalError":
		case database != ready && stream != ready:
			t.Errorf("%s: found Ready=%s, DatabaseReachable=%s, StreamReady=%s; want the server that it is about",
				reason, ready, database, stream)
		}
		if message := messageOf(result, "Ready"); message == "" {
			t.Errorf("%s: found no message", reason)
		}
	}
}

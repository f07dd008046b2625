package conditions_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/relayops/relayops/internal/conditions"
	"github.com/relayops/relayops/internal/resolve"
)

var types = []string{
	"Ready", "Reconciling", "Stalled", "Valid", "RelayFound", "Available", "Progressing", "DatabaseReachable", "StreamReady",
}

// observations are whatever may be found, also together what is not found together.
func observations() *rapid.Generator[conditions.Observed] {
	count := rapid.Int32Range(0, 3)
	deployments := rapid.Custom(func(t *rapid.T) *appsv1.Deployment {
		var states []appsv1.DeploymentCondition
		for _, one := range []appsv1.DeploymentCondition{late, complete, quota} {
			if rapid.Bool().Draw(t, one.Reason) {
				states = append(states, one)
			}
		}
		d := deployment(count.Draw(t, "wanted"), count.Draw(t, "updated"), count.Draw(t, "all"), count.Draw(t, "ready"), states...)
		d.Generation += rapid.Int64Range(0, 1).Draw(t, "unseen")
		return d
	})
	return rapid.Custom(func(t *rapid.T) conditions.Observed {
		observed := conditions.Observed{
			Generation: 7, Deleting: rapid.IntRange(0, 9).Draw(t, "deleting") == 0, Suspended: rapid.Bool().Draw(t, "suspended"),
			Replicas: count.Draw(t, "replicas"),
			Relay:    conditions.RelayReference{Name: "orders", State: conditions.RelayState(rapid.IntRange(0, 2).Draw(t, "relay"))},
			Daemon: conditions.Daemon{
				Answered: rapid.Bool().Draw(t, "answered"), Reason: rapid.SampledFrom(append(daemonReasons(), "", "SomethingNew")).Draw(t, "reason"),
				State:   rapid.SampledFrom([]string{"Running", "Paused", "Suspended", "Draining"}).Draw(t, "state"),
				Message: rapid.SampledFrom([]string{"", "it is so"}).Draw(t, "message"),
			},
		}
		if rapid.IntRange(0, 3).Draw(t, "deployed") > 0 {
			observed.Deployment = deployments.Draw(t, "deployment")
		}
		if rapid.IntRange(0, 4).Draw(t, "faulty") == 0 {
			observed.Faults = []resolve.Fault{{Field: "spec", Found: "a", Allowed: "b"}}
		}
		if rapid.IntRange(0, 4).Draw(t, "refused") == 0 {
			observed.Child = &conditions.ChildProblem{
				Object: "Service a", Kind: conditions.ChildProblemKind(rapid.IntRange(0, 2).Draw(t, "kind")), Message: "no",
			}
		}
		observed.Pods = rapid.SampledFrom([][]corev1.Pod{
			nil, {waiting("ImagePullBackOff", "no")}, {crashed("CrashLoopBackOff", "")}, {waiting("ContainerCreating", "")},
		}).Draw(t, "pods")
		return observed
	})
}

// Whatever is found: the reasons are of the closed sets, exactly one of Ready, Reconciling and Stalled is True (which is
// what kstatus goes by), and a step changes nothing when it is taken again.
func TestConditionsAreClosed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := began
		var before []metav1.Condition
		judge := conditions.OutboxRelay
		if rapid.Bool().Draw(t, "pipeline") {
			judge = conditions.Pipeline
		}
		for _, observed := range rapid.SliceOfN(observations(), 1, 4).Draw(t, "observations") {
			at = at.Add(time.Duration(rapid.IntRange(1, 600).Draw(t, "seconds")) * time.Second)
			result := judge(before, observed, at)
			holds := 0
			for _, one := range result.Conditions {
				if !slices.Contains(conditions.Reasons(one.Type), conditions.Reason(one.Reason)) {
					t.Fatalf("%s: found the reason %q, which is not of the closed set", one.Type, one.Reason)
				}
				if slices.Contains(types[:3], one.Type) && one.Status == metav1.ConditionTrue {
					holds++
				}
				if one.Message == "" || one.LastTransitionTime.After(at) || slices.Contains(types[1:3], one.Type) && one.Status != metav1.ConditionTrue {
					t.Fatalf("found %+v", one)
				}
			}
			if holds != 1 {
				t.Fatalf("found %d of Ready, Reconciling and Stalled; want one: %+v", holds, result.Conditions)
			}
			if again := judge(result.Conditions, observed, at); !slices.Equal(again.Conditions, result.Conditions) || again.Event != nil {
				t.Fatalf("found\n%+v\nafter\n%+v", again, result)
			}
			before = result.Conditions
		}
	})
}

// No reason is documented that nothing gives.
func TestEveryReasonIsGiven(t *testing.T) {
	given := map[string]map[string]bool{"Ready": {"Pending": true}} // the schema's default
	note := func(result conditions.Result) {
		for _, one := range result.Conditions {
			if given[one.Type] == nil {
				given[one.Type] = map[string]bool{}
			}
			given[one.Type][one.Reason] = true
		}
	}
	for _, one := range scenarios() {
		note(one.result(one.before, now))
	}
	for _, reason := range daemonReasons() {
		s := scenario{observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0), Daemon: paused(reason, "")}}
		first := s.result(nil, began)
		note(first)
		note(s.result(first.Conditions, now))
	}
	for _, kind := range types {
		for _, reason := range conditions.Reasons(kind) {
			if !given[kind][string(reason)] {
				t.Errorf("%s: the reason %s is never given", kind, reason)
			}
		}
	}
}

var row = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\|$")

// docs/conditions.md says of each reason what it means and what to do, and of no other.
func TestDocumentationListsTheClosedSets(t *testing.T) {
	text, err := os.ReadFile("../../docs/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string][]string{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		for _, cells := range row.FindAllStringSubmatch(body, -1) {
			sections[heading] = append(sections[heading], cells[1])
		}
	}
	servers := slices.Concat(sections["DatabaseReachable"], sections["StreamReady"])
	for _, kind := range types {
		var want []string
		for _, reason := range conditions.Reasons(kind) {
			// What a server does to Ready stands with the server.
			if kind == "Ready" && slices.Contains(servers, string(reason)) && reason != conditions.ReasonScaledToZero {
				continue
			}
			want = append(want, string(reason))
		}
		got := sections[kind]
		if kind == "Reconciling" || kind == "Stalled" {
			// They have Ready's reasons, listed in a line each.
			got = listed(string(text), kind)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("docs/conditions.md: %s: found\n%v\nwant\n%v", kind, got, want)
		}
	}
	events := sections["Events"]
	slices.Sort(events)
	if want := []string{conditions.EventCleanedUp, conditions.EventCleanupAbandoned}; !slices.Equal(events, want) {
		t.Errorf("docs/conditions.md: Events: found %v, want %v", events, want)
	}
}

// listed are the reasons in the section of a type that has no table: those between backquotes after "Reasons:".
func listed(text, kind string) []string {
	_, section, _ := strings.Cut(text, "\n## "+kind+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, section, _ = strings.Cut(section, "Reasons:")
	section, _, _ = strings.Cut(section, "\n\n")
	var reasons []string
	for _, found := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(section, -1) {
		reasons = append(reasons, found[1])
	}
	return reasons
}

package conditions_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/relayops/relayops/internal/conditions"
	"github.com/relayops/relayops/internal/resolve"
)

// saidOf is the message of Ready for pods that are rolling out.
func saidOf(pods ...corev1.Pod) string {
	observed := conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0), Pods: pods}
	return messageOf(conditions.OutboxRelay(nil, observed, now).Conditions, "Ready")
}

func evicted() corev1.Pod {
	return corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}}
}

func TestPodProblems(t *testing.T) {
	const nothing = "pods of this generation are on their way"
	outOfMemory := crashed("CrashLoopBackOff", "")
	outOfMemory.Status.ContainerStatuses[0].LastTerminationState.Terminated.Reason = "OOMKilled"
	recovered := crashed("", "relay: gone")
	recovered.Status.ContainerStatuses[0].Ready = true
	for _, one := range []struct {
		name string
		pod  corev1.Pod
		want string
	}{
		{"on its way", waiting("ContainerCreating", ""), nothing},
		{"ready after a crash", recovered, nothing},
		{"an image", waiting("ErrImageNeverPull", "not present"), "container relay: the image localhost/relayops:dev cannot be pulled"},
		{"a variable of a Secret that is missing", waiting("CreateContainerConfigError", `secret "proxy" not found`),
			`container relay: CreateContainerConfigError: secret "proxy" not found`},
		{"out of memory", outOfMemory, "container relay ended with exit code 1 (OOMKilled)"},
		{"between two crashes", crashed("", "relay: gone\n"), "container relay ended with exit code 1 (Error): relay: gone"},
		{"last words that are too many", crashed("", strings.Repeat("a", 300)), "container relay ended with exit code 1 (Error)"},
		{"no node", unschedulable("no nodes available"), "a pod cannot be scheduled: no nodes available"},
		{"evicted", evicted(), "a pod failed: Evicted: The node was low on resource: memory."},
	} {
		if got := saidOf(one.pod); got != one.want {
			t.Errorf("%s: found %q, want %q", one.name, got, one.want)
		}
	}
}

// A crashing container is running, waiting or ended in turns, and an image that cannot be pulled has two reasons in
// turns. Neither turn is a change that is worth a write.
func TestTurnsOfAProblemAreOneProblem(t *testing.T) {
	for _, turns := range [][]corev1.Pod{
		{waiting("ErrImagePull", "rpc error: not found"), waiting("ImagePullBackOff", "Back-off pulling image")},
		{crashed("CrashLoopBackOff", "relay: gone"), crashed("", "relay: gone")},
	} {
		if first, second := saidOf(turns[0]), saidOf(turns[1]); first != second {
			t.Errorf("found %q, then %q", first, second)
		}
	}
}

// Of several problems always the same one is told, in whatever order the pods come, and the most useful one.
func TestTheOrderOfPodsMakesNoDifference(t *testing.T) {
	pods := []corev1.Pod{
		unschedulable("b"), crashed("", "relay: b"), unschedulable("a"), crashed("", "relay: a"), waiting("ContainerCreating", ""),
	}
	want := "container relay ended with exit code 1 (Error): relay: a"
	for range pods {
		pods = append(pods[1:], pods[0])
		if got := saidOf(pods...); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	if got := saidOf(slices.Concat(pods, []corev1.Pod{waiting("InvalidImageName", "")})...); !strings.Contains(got, "cannot be pulled") {
		t.Errorf("found %q; want the image, which keeps every pod from running", got)
	}
}

// The near end of a connection is another one at each attempt; it is left out, and the rest stays.
func TestMessagesAreSteady(t *testing.T) {
	for message, want := range map[string]string{
		"read tcp 10.88.0.5:41234->10.88.0.1:5432: read: connection reset by peer": "read tcp 10.88.0.1:5432: read: connection reset by peer",
		"read tcp [fd00::5]:41234->[fd00::1]:5432: i/o timeout":                    "read tcp [fd00::1]:5432: i/o timeout",
		"lookup db on 10.96.0.10:53: read udp 10.88.0.5:5->10.96.0.10:53: refused": "lookup db on 10.96.0.10:53: read udp 10.96.0.10:53: refused",
		"dial tcp 10.88.0.1:5432: connect: connection refused":                     "dial tcp 10.88.0.1:5432: connect: connection refused",
	} {
		observed := conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0), Daemon: paused("DatabaseUnreachable", message)}
		if got := messageOf(conditions.OutboxRelay(nil, observed, now).Conditions, "Ready"); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	faults := slices.Repeat([]resolve.Fault{{Field: "spec.nodes", Found: "ü", Allowed: "u"}}, 25)
	message := messageOf(conditions.OutboxRelay(nil, conditions.Observed{Faults: faults}, now).Conditions, "Valid")
	if lines := strings.Split(message, "\n"); len(lines) != 21 || lines[20] != "and 5 more" {
		t.Errorf("found %d lines, the last of them %q", len(lines), lines[len(lines)-1])
	}
	for cut := range 4 {
		faults := []resolve.Fault{{Field: "spec", Found: strings.Repeat("x", cut) + strings.Repeat("ü", 40000), Allowed: "u"}}
		message := messageOf(conditions.OutboxRelay(nil, conditions.Observed{Faults: faults}, now).Conditions, "Valid")
		if len(message) > 2048 || !utf8.ValidString(message) || !strings.HasSuffix(message, "…") {
			t.Errorf("found %d bytes ending in %q; want at most 2048 of valid text", len(message), message[len(message)-8:])
		}
	}
}

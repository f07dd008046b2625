package conditions_test

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relayops/relayops/internal/conditions"
	"github.com/relayops/relayops/internal/resolve"
)

var (
	began = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	now   = began.Add(time.Hour)
)

// deployment is a live one: wanted, of this template, of any template, ready.
func deployment(wanted, updated, all, ready int32, states ...appsv1.DeploymentCondition) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Generation, d.Spec.Replicas = 3, &wanted
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: 3, Replicas: all, UpdatedReplicas: updated, ReadyReplicas: ready, AvailableReplicas: ready,
		Conditions: states,
	}
	return d
}

func state(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message}
}

var (
	late     = state(appsv1.DeploymentProgressing, "False", "ProgressDeadlineExceeded", "ReplicaSet has timed out progressing.")
	complete = state(appsv1.DeploymentProgressing, "True", "NewReplicaSetAvailable", "ReplicaSet has successfully progressed.")
	quota    = state(appsv1.DeploymentReplicaFailure, "True", "FailedCreate", `pods "a" is forbidden: exceeded quota: small`)
)

func unseen(d *appsv1.Deployment) *appsv1.Deployment {
	d.Generation++
	return d
}

func waiting(reason, message string) corev1.Pod {
	return podWith(corev1.ContainerStatus{
		Name: "relay", Image: "localhost/relayops:dev",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	})
}

func crashed(waiting string, lastWords string) corev1.Pod {
	status := corev1.ContainerStatus{
		Name: "relay", RestartCount: 3,
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, Reason: "Error", Message: lastWords,
		}},
	}
	if waiting == "" {
		status.State.Running = &corev1.ContainerStateRunning{}
	} else {
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: waiting, Message: "back-off 40s restarting failed container"}
	}
	return podWith(status)
}

func podWith(status corev1.ContainerStatus) corev1.Pod {
	return corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{status}}}
}

func unschedulable(message string) corev1.Pod {
	return corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: message,
	}}}}
}

func paused(reason, message string) conditions.Daemon {
	return conditions.Daemon{Answered: true, State: "Paused", Reason: reason, Message: message}
}

func since(kind string, at time.Time) []metav1.Condition {
	return []metav1.Condition{{
		Type: kind, Status: metav1.ConditionFalse, Reason: "DatabaseUnauthorized", LastTransitionTime: metav1.NewTime(at),
	}}
}

var running = conditions.Daemon{Answered: true, State: "Running"}

// scenario is a resource as it may be found, and what its conditions say.
type scenario struct {
	name     string
	pipeline bool
	// deleted gives it a deletionTimestamp, and outdated a generation that the operator has not looked at.
	deleted, outdated bool
	before            []metav1.Condition
	observed          conditions.Observed
	// ready is status and reason; others are those that are looked at, as type=status/reason.
	ready, message string
	others         []string
	// kstatus and argo are what the GitOps tools make of it.
	kstatus, argo string
	// event is type and reason of the Event, for a resource that nothing was known of before.
	event string
}

func scenarios() []scenario {
	return []scenario{
		{name: "running", observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 1), Daemon: running},
			ready: "True/Running", kstatus: "Current", argo: "Healthy", event: "Normal Running",
			others: []string{"Valid=True/Valid", "Available=True/PodsAvailable", "Progressing=False/RolledOut",
				"DatabaseReachable=True/Reachable", "StreamReady=True/Usable", "Reconciling=", "Stalled=", "RelayFound="}},
		{name: "a pipeline runs", pipeline: true,
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 1), Daemon: running,
				Relay: conditions.RelayReference{Name: "orders"}},
			ready: "True/Running", kstatus: "Current", argo: "Healthy", event: "Normal Running",
			others: []string{"RelayFound=True/RelayFound", "StreamReady=True/Usable"}},
		{name: "one of three pods is gone after the rollout",
			observed: conditions.Observed{Replicas: 3, Deployment: deployment(3, 3, 3, 2, complete), Daemon: running},
			ready:    "True/Running", kstatus: "Current", argo: "Healthy", event: "Normal Running",
			others: []string{"Available=True/PodsAvailable", "Progressing=False/RolledOut"}},
		{name: "not asked yet",
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 1)},
			ready:    "True/Running", kstatus: "Current", argo: "Healthy", event: "Normal Running",
			others: []string{"DatabaseReachable=Unknown/NotReported", "StreamReady=Unknown/NotReported"}},
		{name: "one of several pods begins",
			before: []metav1.Condition{{Type: "DatabaseReachable", Status: "True", Reason: "Reachable"}},
			observed: conditions.Observed{Replicas: 2, Deployment: deployment(2, 2, 2, 1, complete),
				Daemon: paused("Starting", "")},
			ready: "True/Running", kstatus: "Current", argo: "Healthy", event: "Normal Running",
			others: []string{"DatabaseReachable=True/Reachable", "StreamReady=Unknown/Starting"}},
		{name: "suspended",
			observed: conditions.Observed{Replicas: 1, Suspended: true, Deployment: deployment(1, 1, 1, 1),
				Daemon: conditions.Daemon{Answered: true, State: "Suspended"}},
			ready: "True/Suspended", kstatus: "Current", argo: "Healthy", event: "Normal Suspended",
			others: []string{"Reconciling=", "DatabaseReachable=True/Reachable"}},
		{name: "suspended while the database is away",
			observed: conditions.Observed{Replicas: 1, Suspended: true, Deployment: deployment(1, 1, 1, 0, complete),
				Daemon: paused("DatabaseUnreachable", "no route")},
			ready: "True/Suspended", kstatus: "Current", argo: "Healthy", event: "Normal Suspended",
			others: []string{"DatabaseReachable=False/DatabaseUnreachable"}},
		{name: "suspended, and the pods do not know yet",
			observed: conditions.Observed{Replicas: 1, Suspended: true, Deployment: unseen(deployment(1, 1, 1, 1)), Daemon: running},
			ready:    "Unknown/RollingOut", kstatus: "InProgress", argo: "Progressing", event: "Normal RollingOut"},
		{name: "scaled to zero",
			observed: conditions.Observed{Deployment: deployment(0, 0, 0, 0)},
			ready:    "True/ScaledToZero", kstatus: "Current", argo: "Healthy", event: "Normal ScaledToZero",
			others: []string{"Available=False/ScaledToZero", "DatabaseReachable=Unknown/ScaledToZero", "Progressing=False/RolledOut"}},
		{name: "scaling to zero",
			observed: conditions.Observed{Deployment: deployment(0, 1, 1, 1), Daemon: running},
			ready:    "Unknown/RollingOut", kstatus: "InProgress", argo: "Progressing", event: "Normal RollingOut"},
		{name: "no Deployment yet", observed: conditions.Observed{Replicas: 1},
			ready: "Unknown/RollingOut", kstatus: "InProgress", argo: "Progressing", event: "Normal RollingOut",
			others: []string{"Available=False/NoDeployment", "Progressing=False/NoDeployment",
				"DatabaseReachable=Unknown/NoDeployment", "Reconciling=True/RollingOut"}},
		{name: "a Deployment that its controller has not seen",
			observed: conditions.Observed{Replicas: 1, Deployment: unseen(deployment(1, 1, 1, 1)), Daemon: running},
			ready:    "Unknown/RollingOut", kstatus: "InProgress", argo: "Progressing", event: "Normal RollingOut",
			others: []string{"Progressing=True/RollingOut", "Available=True/PodsAvailable"}},
		{name: "new pods beside old ones",
			observed: conditions.Observed{Replicas: 2, Deployment: deployment(2, 1, 3, 2, complete), Daemon: running},
			ready:    "Unknown/RollingOut", kstatus: "InProgress", argo: "Progressing", event: "Normal RollingOut"},
		{name: "the first look is not over",
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0), Daemon: paused("Starting", "")},
			ready:    "Unknown/RollingOut", kstatus: "InProgress", argo: "Progressing", event: "Normal RollingOut",
			others: []string{"DatabaseReachable=Unknown/Starting", "StreamReady=Unknown/Starting"}},
		{name: "the only pod begins again",
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0, complete), Daemon: paused("Starting", "")},
			ready:    "False/PodsUnavailable", kstatus: "InProgress", argo: "Progressing", event: "Warning PodsUnavailable"},
		{name: "draining, and nothing after it",
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 1),
				Daemon: conditions.Daemon{Answered: true, State: "Draining"}},
			ready: "True/Running", kstatus: "Current", argo: "Healthy", event: "Normal Running",
			others: []string{"DatabaseReachable=Unknown/Starting"}},
		{name: "mistakes", observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 1), Daemon: running,
			Faults: []resolve.Fault{
				{Field: "spec.nodes[1].type", Found: `"http-reqest"`, Allowed: "http-request"},
				{Found: "a cycle", Allowed: "none"},
			}},
			ready: "False/Invalid", kstatus: "Failed", argo: "Degraded", event: "Warning Invalid",
			message: "spec.nodes[1].type: found \"http-reqest\"; allowed: http-request\nfound a cycle; allowed: none",
			others:  []string{"Valid=False/Invalid", "Stalled=True/Invalid", "Reconciling=", "Available=True/PodsAvailable"}},
		{name: "no relay", pipeline: true,
			observed: conditions.Observed{Replicas: 1, Relay: conditions.RelayReference{Name: "orders", State: conditions.RelayMissing}},
			ready:    "False/RelayMissing", kstatus: "InProgress", argo: "Progressing", event: "Warning RelayMissing",
			others: []string{"RelayFound=False/RelayMissing", "Valid=True/Valid"}},
		{name: "a relay with mistakes", pipeline: true,
			observed: conditions.Observed{Replicas: 1, Relay: conditions.RelayReference{Name: "orders", State: conditions.RelayInvalid}},
			ready:    "False/RelayInvalid", kstatus: "InProgress", argo: "Progressing", event: "Warning RelayInvalid"},
		{name: "somebody else's Deployment",
			observed: conditions.Observed{Replicas: 1, Child: &conditions.ChildProblem{
				Object: "Deployment orders-relay", Kind: conditions.ChildOwnedByOther, Message: "it belongs to StatefulSet db",
			}},
			ready: "False/ChildOwnedByOther", kstatus: "Failed", argo: "Degraded", event: "Warning ChildOwnedByOther",
			message: "Deployment orders-relay: it belongs to StatefulSet db"},
		{name: "an invalid child",
			observed: conditions.Observed{Replicas: 1, Child: &conditions.ChildProblem{
				Object: "Deployment orders-relay", Kind: conditions.ChildInvalid, Message: "spec.template…: must be less than or equal to memory limit",
			}},
			ready: "False/ChildInvalid", kstatus: "Failed", argo: "Degraded", event: "Warning ChildInvalid"},
		{name: "a refused child",
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 1), Daemon: running,
				Child: &conditions.ChildProblem{Object: "Service orders-relay", Kind: conditions.ChildRefused, Message: "denied"}},
			ready: "False/ChildRefused", kstatus: "InProgress", argo: "Progressing", event: "Warning ChildRefused"},
		{name: "a quota", observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 0, 0, 0, quota)},
			ready: "False/PodsRefused", kstatus: "InProgress", argo: "Progressing", event: "Warning PodsRefused",
			others: []string{"Available=False/PodsRefused"}},
		{name: "a quota for ten minutes", observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 0, 0, 0, quota, late)},
			ready: "False/PodsRefused", kstatus: "Failed", argo: "Degraded", event: "Warning PodsRefused"},
		{name: "an image that is not there",
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0),
				Pods: []corev1.Pod{waiting("ImagePullBackOff", "Back-off pulling image")}},
			ready: "False/PodFailing", kstatus: "InProgress", argo: "Progressing", event: "Warning PodFailing",
			message: "container relay: the image localhost/relayops:dev cannot be pulled",
			others:  []string{"Available=False/PodFailing", "DatabaseReachable=Unknown/NotReported"}},
		{name: "an image that is not there, for ten minutes",
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0, late),
				Pods: []corev1.Pod{waiting("ErrImagePull", "not found")}},
			ready: "False/PodFailing", kstatus: "Failed", argo: "Degraded", event: "Warning PodFailing",
			message: "container relay: the image localhost/relayops:dev cannot be pulled",
			others:  []string{"Progressing=False/ProgressDeadlineExceeded"}},
		{name: "new pods that fail beside old ones that serve",
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 2, 1), Daemon: running,
				Pods: []corev1.Pod{crashed("CrashLoopBackOff", "{\"level\":\"INFO\"}\nrelay: listen for health and metrics at :8080: taken")}},
			ready: "False/PodFailing", kstatus: "InProgress", argo: "Progressing", event: "Warning PodFailing",
			message: "container relay ended with exit code 1 (Error): relay: listen for health and metrics at :8080: taken",
			others:  []string{"Available=True/PodsAvailable", "DatabaseReachable=True/Reachable"}},
		{name: "nothing says why it is late",
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0, late)},
			ready:    "False/ProgressDeadlineExceeded", kstatus: "Failed", argo: "Degraded", event: "Warning ProgressDeadlineExceeded"},
		{name: "no room on any node",
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0),
				Pods: []corev1.Pod{unschedulable("0/3 nodes are available: 3 Insufficient cpu.")}},
			ready: "False/PodFailing", kstatus: "InProgress", argo: "Progressing", event: "Warning PodFailing",
			message: "a pod cannot be scheduled: 0/3 nodes are available: 3 Insufficient cpu."},
		{name: "the database is away",
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0, complete),
				Daemon: paused("DatabaseUnreachable", "read tcp 10.88.0.5:41234->10.88.0.1:5432: i/o timeout")},
			ready: "False/DatabaseUnreachable", kstatus: "InProgress", argo: "Progressing", event: "Warning DatabaseUnreachable",
			message: "read tcp 10.88.0.1:5432: i/o timeout",
			others: []string{"DatabaseReachable=False/DatabaseUnreachable", "StreamReady=Unknown/NotReported",
				"Available=False/PodsUnavailable", "Reconciling=True/DatabaseUnreachable"}},
		{name: "the database is away for long, which is nobody's mistake",
			before: since("DatabaseReachable", began),
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0, late),
				Daemon: paused("DatabaseUnreachable", "")},
			ready: "False/DatabaseUnreachable", kstatus: "InProgress", argo: "Progressing", event: "Warning DatabaseUnreachable",
			message: "the database does not answer"},
		{name: "a password that was just rotated",
			before: since("DatabaseReachable", now.Add(-time.Minute)),
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0, complete),
				Daemon: paused("DatabaseUnauthorized", "correct it")},
			ready: "False/DatabaseUnauthorized", kstatus: "InProgress", argo: "Progressing", event: "Warning DatabaseUnauthorized"},
		{name: "a password that is wrong for five minutes",
			before: since("DatabaseReachable", now.Add(-5*time.Minute)),
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0, complete),
				Daemon: paused("DatabaseUnauthorized", "correct it")},
			ready: "False/DatabaseUnauthorized", kstatus: "Failed", argo: "Degraded", event: "Warning DatabaseUnauthorized",
			others: []string{"Stalled=True/DatabaseUnauthorized", "Reconciling="}},
		{name: "the broker is away", pipeline: true,
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0, complete),
				Relay: conditions.RelayReference{Name: "orders"}, Daemon: paused("BrokerUnreachable", "no NATS server answers")},
			ready: "False/BrokerUnreachable", kstatus: "InProgress", argo: "Progressing", event: "Warning BrokerUnreachable",
			others: []string{"DatabaseReachable=True/Reachable", "StreamReady=False/BrokerUnreachable"}},
		{name: "a stream of somebody else",
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0),
				Daemon: paused("StreamConflict", "stream RELAYOPS belongs to instance eu-2")},
			ready: "False/StreamConflict", kstatus: "Failed", argo: "Degraded", event: "Warning StreamConflict",
			others: []string{"StreamReady=False/StreamConflict", "DatabaseReachable=True/Reachable"}},
		{name: "a consumer of somebody else", pipeline: true,
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0),
				Relay: conditions.RelayReference{Name: "orders"}, Daemon: paused("ConsumerOwnedByOther", "")},
			ready: "False/ConsumerOwnedByOther", kstatus: "Failed", argo: "Degraded", event: "Warning ConsumerOwnedByOther"},
		{name: "a reason of a newer daemon",
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0), Daemon: paused("MoonInTheWay", "wait for the night")},
			ready:    "False/Paused", kstatus: "InProgress", argo: "Progressing", event: "Warning Paused",
			message: "MoonInTheWay: wait for the night",
			others:  []string{"DatabaseReachable=Unknown/NotReported", "StreamReady=Unknown/NotReported"}},
		{name: "a fault of the daemon",
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 0), Daemon: paused("InternalError", "")},
			ready:    "False/InternalError", kstatus: "InProgress", argo: "Progressing", event: "Warning InternalError"},
		{name: "being deleted", deleted: true,
			observed: conditions.Observed{Replicas: 1, Deleting: true, Deployment: deployment(1, 1, 1, 1), Daemon: running},
			ready:    "False/Deleting", kstatus: "Terminating", argo: "Progressing", event: "Normal Deleting"},
		{name: "edited just now", outdated: true,
			observed: conditions.Observed{Replicas: 1, Deployment: deployment(1, 1, 1, 1), Daemon: running},
			ready:    "True/Running", kstatus: "InProgress", argo: "Progressing", event: "Normal Running"},
	}
}

package conditions

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patience is how long something may last that passes by itself while Secrets are rotated, servers fail over and
// migrations run.
const patience = 5 * time.Minute

// finding is what a condition becomes.
type finding struct {
	status  metav1.ConditionStatus
	reason  Reason
	message string
}

func yes(reason Reason, message string) finding {
	return finding{metav1.ConditionTrue, reason, message}
}

func no(reason Reason, message string) finding {
	return finding{metav1.ConditionFalse, reason, message}
}

func unknown(reason Reason, message string) finding {
	return finding{metav1.ConditionUnknown, reason, message}
}

// judgement is one resource, looked at once.
type judgement struct {
	observed Observed
	// pipeline: it is one, and no OutboxRelay.
	pipeline bool
	before   []metav1.Condition
	now      time.Time
}

// daemonName is what the pods run.
func (j *judgement) daemonName() string {
	if j.pipeline {
		return "worker"
	}
	return "relay"
}

// ready sums up: the first that holds of a list which begins with what the rest depends on. stalled tells that only a
// user can repair it.
func (j *judgement) ready() (found finding, stalled bool) {
	for _, look := range []func() (finding, bool, bool){
		j.deleting, j.mistaken, j.withoutRelay, j.childless, j.suspended, j.daemonAway, j.podsAway, j.underway,
	} {
		if found, stalled, holds := look(); holds {
			return found, stalled
		}
	}
	return yes(ReasonRunning, "the "+j.daemonName()+" runs"), false
}

func (j *judgement) deleting() (found finding, stalled, holds bool) {
	return no(ReasonDeleting, "the resource is being deleted; see its deletionPolicy"), false, j.observed.Deleting
}

func (j *judgement) mistaken() (found finding, stalled, holds bool) {
	return no(ReasonInvalid, faultsMessage(j.observed.Faults)), true, len(j.observed.Faults) > 0
}

func (j *judgement) withoutRelay() (found finding, stalled, holds bool) {
	if !j.pipeline {
		return finding{}, false, false
	}
	found = j.relayFound()
	return found, false, found.status != metav1.ConditionTrue
}

func (j *judgement) childless() (found finding, stalled, holds bool) {
	child := j.observed.Child
	if child == nil {
		return finding{}, false, false
	}
	message := steady(child.Object + ": " + child.Message)
	switch child.Kind {
	case ChildOwnedByOther:
		return no(ReasonChildOwnedByOther, message), true, true
	case ChildInvalid:
		return no(ReasonChildInvalid, message), true, true
	default:
		return no(ReasonChildRefused, message), false, true
	}
}

// suspended holds once the pods know of it: until then they go on.
func (j *judgement) suspended() (found finding, stalled, holds bool) {
	return yes(ReasonSuspended, "spec.suspend is true: the "+j.daemonName()+" takes nothing up"), false,
		j.observed.Suspended && rolledOut(j.observed.Deployment)
}

func (j *judgement) daemonAway() (found finding, stalled, holds bool) {
	if j.observed.Replicas == 0 {
		return finding{}, false, false
	}
	problem := j.observed.Daemon.problem()
	if problem == nil {
		return finding{}, false, false
	}
	return no(problem.reason, problem.message), j.stalls(problem), true
}

// stalls tells whether a daemon's problem waits for a user: at once, or after some patience.
func (j *judgement) stalls(problem *daemonReason) bool {
	switch problem.repair {
	case repairUser:
		return true
	case repairLater:
		kind := TypeDatabaseReachable
		if problem.part == partStream {
			kind = TypeStreamReady
		}
		before := j.was(kind)
		return before != nil && before.Status == metav1.ConditionFalse &&
			j.now.Sub(before.LastTransitionTime.Time) >= patience
	default:
		return false
	}
}

// podsAway: pods that cannot run, while they are rolled out or none is left.
func (j *judgement) podsAway() (found finding, stalled, holds bool) {
	deployment := j.observed.Deployment
	complete := rolledOut(deployment)
	if deployment == nil || j.observed.Replicas == 0 || complete && available(deployment) {
		return finding{}, false, false
	}
	late := deadlineExceeded(deployment)
	switch problem, refusal := podProblem(j.observed.Pods), refused(deployment); {
	case refusal != "":
		return no(ReasonPodsRefused, refusal), late, true
	case problem != "":
		return no(ReasonPodFailing, problem), late, true
	case late:
		return no(ReasonProgressDeadlineExceeded, "the pods did not become ready in time"), true, true
	case complete:
		return no(ReasonPodsUnavailable, "no pod is ready"), false, true
	default:
		return finding{}, false, false
	}
}

func (j *judgement) underway() (found finding, stalled, holds bool) {
	switch {
	case !rolledOut(j.observed.Deployment):
		return unknown(ReasonRollingOut, "pods of this generation are on their way"), false, true
	case j.observed.Replicas == 0:
		return yes(ReasonScaledToZero, "spec.replicas is 0: nothing runs"), false, true
	default:
		return finding{}, false, false
	}
}

package conditions

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OutboxRelay gives the conditions of an OutboxRelay. A condition whose status is what it was keeps its
// lastTransitionTime; conditions of types that are not RelayOps' own are kept as they are.
func OutboxRelay(before []metav1.Condition, observed Observed, now time.Time) Result {
	j := judgement{observed: observed, before: before, now: now}
	return j.result()
}

// Pipeline gives the conditions of a Pipeline, likewise.
func Pipeline(before []metav1.Condition, observed Observed, now time.Time) Result {
	j := judgement{observed: observed, before: before, now: now, pipeline: true}
	return j.result()
}

func (j *judgement) result() Result {
	ready, stalled := j.ready()
	all := []metav1.Condition{j.condition(TypeReady, ready)}
	// Absent is False, as kstatus has it.
	switch {
	case stalled:
		all = append(all, j.condition(TypeStalled, yes(ready.reason, ready.message)))
	case ready.status != metav1.ConditionTrue:
		all = append(all, j.condition(TypeReconciling, yes(ready.reason, ready.message)))
	}
	all = append(all, j.condition(TypeValid, j.valid()))
	if j.pipeline {
		all = append(all, j.condition(TypeRelayFound, j.relayFound()))
	}
	all = append(all,
		j.condition(TypeAvailable, j.available()),
		j.condition(TypeProgressing, j.progressing()),
		j.condition(TypeDatabaseReachable, j.database()),
		j.condition(TypeStreamReady, j.stream()),
	)
	for _, other := range j.before {
		if _, own := closedSets[other.Type]; !own {
			all = append(all, other)
		}
	}
	return Result{Conditions: all, Event: j.event(ready)}
}

func (j *judgement) condition(kind string, found finding) metav1.Condition {
	condition := metav1.Condition{
		Type: kind, Status: found.status, Reason: string(found.reason), Message: found.message,
		ObservedGeneration: j.observed.Generation,
		// What is stored has whole seconds.
		LastTransitionTime: metav1.NewTime(j.now.Truncate(time.Second)),
	}
	if before := j.was(kind); before != nil && before.Status == found.status {
		condition.LastTransitionTime = before.LastTransitionTime
	}
	return condition
}

// event tells of Ready: of another status, or of another reason why it is False.
func (j *judgement) event(ready finding) *Event {
	before := j.was(TypeReady)
	if before != nil && before.Status == ready.status &&
		(ready.status != metav1.ConditionFalse || before.Reason == string(ready.reason)) {
		return nil
	}
	kind := corev1.EventTypeNormal
	if ready.status == metav1.ConditionFalse && ready.reason != ReasonDeleting {
		kind = corev1.EventTypeWarning
	}
	return &Event{Type: kind, Reason: string(ready.reason), Message: ready.message}
}

// was is the condition of before; nil: there was none, or none but the schema's default, whose time is no time.
func (j *judgement) was(kind string) *metav1.Condition {
	at := slices.IndexFunc(j.before, func(c metav1.Condition) bool { return c.Type == kind })
	if at < 0 || j.before[at].Reason == string(ReasonPending) {
		return nil
	}
	return &j.before[at]
}

package conditions

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OutboxRelay gives the conditions of an OutboxRelay. A condition whose status is what it was keeps its
// lastTransitionTime; conditions of types that are not RelayOps' own are kept as they are.
func OutboxRelay(before []metav1.Condition, observed Observed, now time.Time) Result {
	return Result{Conditions: before}
}

// Pipeline gives the conditions of a Pipeline, likewise.
func Pipeline(before []metav1.Condition, observed Observed, now time.Time) Result {
	return Result{Conditions: before}
}

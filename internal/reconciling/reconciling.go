// Package reconciling holds what the reconcilers of all kinds have in common: what an error or a problem means for the
// next look at the resource, and what of a Deployment a status shows.
package reconciling

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/relayops/relayops/internal/children"
	"github.com/relayops/relayops/internal/conditions"
	"github.com/relayops/relayops/internal/resolve"
)

const (
	// conflictAgain is how soon a write that met a newer version is tried again, if no event comes before.
	conflictAgain = time.Second
	// refusedAgain is how soon a child that was refused, or is somebody else's, is tried again: nothing tells when
	// that is over.
	refusedAgain = 15 * time.Second
	// unreadyAgain is how soon what is not ready is looked at again: some conditions change with time alone.
	unreadyAgain = 30 * time.Second
)

// Settled is the end of a reconciliation with an error, or nil. A conflict is none: the cache was behind, and the event
// of what is newer is on its way.
func Settled(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictAgain}, nil
	}
	return reconcile.Result{}, err
}

// Again says when to look at a resource again whose status was written.
func Again(found []metav1.Condition, problem *conditions.ChildProblem) reconcile.Result {
	switch {
	case problem != nil && problem.Kind != conditions.ChildInvalid:
		return reconcile.Result{RequeueAfter: refusedAgain}
	case meta.IsStatusConditionTrue(found, conditions.TypeReady):
		return reconcile.Result{}
	default:
		return reconcile.Result{RequeueAfter: unreadyAgain}
	}
}

// Tell records the Event of a change, if there is one.
func Tell(recorder events.EventRecorder, object runtime.Object, event *conditions.Event) {
	if event != nil {
		recorder.Eventf(object, nil, event.Type, event.Reason, "Reconcile", "%s", event.Message)
	}
}

// Unreadable is the fault of a resource that got past an older schema.
func Unreadable(err error) []resolve.Fault {
	return []resolve.Fault{{Field: "spec", Found: err.Error(), Allowed: "a resource that fits the schema"}}
}

// Value of a field with a default in the schema.
func Value[T any](field *T, byDefault T) T {
	if field == nil {
		return byDefault
	}
	return *field
}

// Replicas is how many pods there are, for the scale subresource.
func Replicas(found children.Observation) *int32 {
	var count int32
	if found.Deployment != nil {
		count = found.Deployment.Status.Replicas
	}
	return &count
}

// Selector is a selector in words, for the scale subresource.
func Selector(selector map[string]string) string { return labels.Set(selector).String() }

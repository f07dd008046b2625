package outboxrelay

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/apply"
	"github.com/relayops/relayops/internal/conditions"
	"github.com/relayops/relayops/internal/naming"
	"github.com/relayops/relayops/internal/reconciling"
)

// Setup has the manager run the reconciler. changed brings the OutboxRelays whose relays told something new.
func (r *Reconciler) Setup(manager ctrl.Manager, podMonitors bool, changed <-chan event.GenericEvent,
	options controller.Options,
) error {
	build := ctrl.NewControllerManagedBy(manager).Named("outboxrelay").For(&v1alpha1.OutboxRelay{}).
		WithOptions(options).
		// What one gives up, another that was in conflict with it may have.
		Watches(&v1alpha1.OutboxRelay{}, handler.EnqueueRequestsFromMapFunc(r.inConflict),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Pod{}, reconciling.ByOwnerLabel(naming.LabelOutboxRelay)).
		Watches(&batchv1.Job{}, reconciling.ByOwnerLabel(naming.LabelOutboxRelay)).
		WatchesRawSource(source.Channel(changed, &handler.EnqueueRequestForObject{}))
	for _, kind := range apply.Kinds(podMonitors) {
		build = build.Owns(kind)
	}
	return build.Complete(r)
}

// inConflict are the other OutboxRelays that have mistakes: a conflict may be over.
func (r *Reconciler) inConflict(ctx context.Context, changed client.Object) []reconcile.Request {
	var list v1alpha1.OutboxRelayList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // The cache answers as long as the operator runs.
	}
	var requests []reconcile.Request
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID != changed.GetUID() &&
			meta.IsStatusConditionFalse(other.Status.Conditions, conditions.TypeValid) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)})
		}
	}
	return requests
}

package pipeline

import (
	"context"
	"fmt"

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

// indexRelay is the cache's index of Pipelines by the OutboxRelay that they name.
const indexRelay = "spec.relayRef.name"

// Setup has the manager run the reconciler. changed brings the Pipelines whose workers told something new.
func (r *Reconciler) Setup(ctx context.Context, manager ctrl.Manager, podMonitors bool,
	changed <-chan event.GenericEvent, options controller.Options,
) error {
	err := manager.GetFieldIndexer().IndexField(ctx, &v1alpha1.Pipeline{}, indexRelay, func(o client.Object) []string {
		return []string{o.(*v1alpha1.Pipeline).Spec.RelayRef.Name}
	})
	if err != nil {
		return fmt.Errorf("index Pipelines by their OutboxRelay: %w", err)
	}
	build := ctrl.NewControllerManagedBy(manager).Named("pipeline").For(&v1alpha1.Pipeline{}).WithOptions(options).
		Watches(&v1alpha1.OutboxRelay{}, handler.EnqueueRequestsFromMapFunc(r.pipelinesOf),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, validityChanged()))).
		Watches(&corev1.Pod{}, reconciling.ByOwnerLabel(naming.LabelPipeline)).
		Watches(&batchv1.Job{}, reconciling.ByOwnerLabel(naming.LabelPipeline)).
		WatchesRawSource(source.Channel(changed, &handler.EnqueueRequestForObject{}))
	for _, kind := range apply.Kinds(podMonitors) {
		build = build.Owns(kind)
	}
	return build.Complete(r)
}

// pipelinesOf are those of an OutboxRelay.
func (r *Reconciler) pipelinesOf(ctx context.Context, relay client.Object) []reconcile.Request {
	var list v1alpha1.PipelineList
	err := r.Client.List(ctx, &list, client.InNamespace(relay.GetNamespace()),
		client.MatchingFields{indexRelay: relay.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil // The cache answers as long as the operator runs.
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return requests
}

// validityChanged passes what a Pipeline has to know of the status of its OutboxRelay.
func validityChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return isInvalid(e.ObjectOld) != isInvalid(e.ObjectNew)
	}}
}

func isInvalid(object client.Object) bool {
	relay, ok := object.(*v1alpha1.OutboxRelay)
	return ok && meta.IsStatusConditionFalse(relay.Status.Conditions, conditions.TypeValid)
}

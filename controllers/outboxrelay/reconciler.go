// Package outboxrelay reconciles OutboxRelays: each gets the Deployment of its relay and what belongs to it, and a
// status that says what became of them.
//
//	resolve ──► desired ──► apply, prune ──► observe ──► conditions ──► status
package outboxrelay

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/apply"
	"github.com/relayops/relayops/internal/children"
	"github.com/relayops/relayops/internal/cleanup"
	"github.com/relayops/relayops/internal/conditions"
	"github.com/relayops/relayops/internal/desired"
	"github.com/relayops/relayops/internal/naming"
	"github.com/relayops/relayops/internal/reconciling"
	"github.com/relayops/relayops/internal/resolve"
)

// +kubebuilder:rbac:groups=relayops.io,resources=outboxrelays;pipelines,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=relayops.io,resources=outboxrelays/status;pipelines/status,verbs=patch
// +kubebuilder:rbac:groups=relayops.io,resources=outboxrelays/finalizers;pipelines/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts;configmaps;services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=podmonitors,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler of OutboxRelays.
type Reconciler struct {
	Client   client.Client
	Children *children.Children
	Cleaner  *cleanup.Cleaner
	Events   events.EventRecorder
	Platform desired.Platform
	Now      func() time.Time
}

// resolved is what becomes of an OutboxRelay before anything is written.
type resolved struct {
	faults  []resolve.Fault
	objects []desired.Object
}

// Reconcile makes the cluster what one OutboxRelay says, and its status what became of that.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	relay := &v1alpha1.OutboxRelay{}
	if err := r.Client.Get(ctx, request.NamespacedName, relay); err != nil {
		r.Children.Forget(v1alpha1.KindOutboxRelay, request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if relay.DeletionTimestamp != nil {
		return r.delete(ctx, relay)
	}
	wanted := relay.Spec.DeletionPolicy == v1alpha1.DeletionPolicyDelete
	if written, err := apply.Finalizer(ctx, r.Client, relay, wanted); written || err != nil {
		return reconciling.Settled(err) // What was written comes back as an event.
	}
	others, err := r.others(ctx, relay)
	if err != nil {
		return reconcile.Result{}, err
	}
	made, err := r.resolve(relay, others)
	if err != nil {
		return reconcile.Result{}, err
	}
	var problem *conditions.ChildProblem
	if len(made.faults) == 0 {
		if problem, err = r.Children.Make(ctx, relay, made.objects); err != nil {
			return reconciling.Settled(err)
		}
	}
	return r.report(ctx, relay, made, problem)
}

// others are the OutboxRelays that were there before this one: which of two in conflict is at fault does not depend on
// the order in which they are looked at.
func (r *Reconciler) others(ctx context.Context, relay *v1alpha1.OutboxRelay) ([]v1alpha1.OutboxRelay, error) {
	var all v1alpha1.OutboxRelayList
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list OutboxRelays: %w", err)
	}
	var before []v1alpha1.OutboxRelay
	for i := range all.Items {
		if other := &all.Items[i]; other.DeletionTimestamp == nil && isBefore(other, relay) {
			before = append(before, *other)
		}
	}
	return before, nil
}

func isBefore(a, b *v1alpha1.OutboxRelay) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}

// resolve is pure.
func (r *Reconciler) resolve(relay *v1alpha1.OutboxRelay, others []v1alpha1.OutboxRelay) (resolved, error) {
	faults := resolve.CheckRelay(relay)
	for i := range others {
		faults = append(faults, resolve.Conflicts(relay, &others[i], desired.Mounts())...)
	}
	if len(faults) > 0 {
		return resolved{faults: faults}, nil
	}
	spec, err := resolve.Relay(relay, desired.Mounts())
	if err != nil {
		return resolved{faults: reconciling.Unreadable(err)}, nil
	}
	objects, err := desired.Relay(relay, spec, r.Platform)
	if fault, ok := errors.AsType[*desired.FaultError](err); ok {
		return resolved{faults: []resolve.Fault{fault.Fault}}, nil
	}
	return resolved{objects: objects}, err
}

func (r *Reconciler) report(ctx context.Context, relay *v1alpha1.OutboxRelay, made resolved,
	problem *conditions.ChildProblem,
) (reconcile.Result, error) {
	found, err := r.Children.Observe(ctx, relay, v1alpha1.KindOutboxRelay, made.objects)
	if err != nil {
		return reconcile.Result{}, err
	}
	result := conditions.OutboxRelay(relay.Status.Conditions, conditions.Observed{
		Generation: relay.Generation,
		Suspended:  reconciling.Value(relay.Spec.Suspend, false), Replicas: reconciling.Value(relay.Spec.Replicas, 1),
		Faults: made.faults, Child: problem, Deployment: found.Deployment, Pods: found.Pods, Daemon: found.Daemon,
		Deleting: relay.DeletionTimestamp != nil,
	}, r.Now())
	after := relay.DeepCopy()
	after.Status.Conditions = result.Conditions
	after.Status.ObservedGeneration = relay.Generation
	after.Status.Key = resolve.RelayKey(relay)
	after.Status.Selector = reconciling.Selector(naming.RelaySelector(relay.Name))
	after.Status.Replicas = reconciling.Replicas(found)
	if _, err := apply.Status(ctx, r.Client, relay, after); err != nil {
		return reconciling.Settled(err)
	}
	reconciling.Tell(r.Events, relay, result.Event)
	return reconciling.Again(result.Conditions, problem), nil
}

func (r *Reconciler) delete(ctx context.Context, relay *v1alpha1.OutboxRelay) (reconcile.Result, error) {
	if !cleanup.Holds(relay) {
		return reconcile.Result{}, nil
	}
	outcome, err := r.Cleaner.Run(ctx, relay, cleanup.Work{
		Deployment: naming.Relay(relay.Name), Selector: naming.RelaySelector(relay.Name),
		Job: func() (*batchv1.Job, error) {
			spec, err := resolve.Relay(relay, desired.Mounts())
			if err != nil {
				return nil, err
			}
			return desired.RelayCleanup(relay, spec, r.Platform)
		},
	})
	if err != nil {
		return reconciling.Settled(err)
	}
	if !outcome.Done {
		_, err := r.report(ctx, relay, resolved{}, nil)
		return reconcile.Result{RequeueAfter: outcome.Again}, err
	}
	written, err := apply.Finalizer(ctx, r.Client, relay, false)
	if written {
		cleanup.Tell(r.Events, relay, outcome)
	}
	return reconciling.Settled(client.IgnoreNotFound(err))
}

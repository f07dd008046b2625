// Package pipeline reconciles Pipelines: each gets the Deployment of its workers and what belongs to it, and a status
// that says what became of them.
//
//	relayRef ──► resolve ──► desired ──► apply, prune ──► observe ──► conditions ──► status
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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

// Reconciler of Pipelines.
type Reconciler struct {
	Client   client.Client
	Children *children.Children
	Cleaner  *cleanup.Cleaner
	Events   events.EventRecorder
	Platform desired.Platform
	Now      func() time.Time
}

// resolved is what becomes of a Pipeline before anything is written.
type resolved struct {
	relay              conditions.RelayReference
	faults             []resolve.Fault
	objects            []desired.Object
	revision, consumer string
	key                string
}

// Reconcile makes the cluster what one Pipeline says, and its status what became of that.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pipeline := &v1alpha1.Pipeline{}
	if err := r.Client.Get(ctx, request.NamespacedName, pipeline); err != nil {
		r.Children.Forget(v1alpha1.KindPipeline, request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	relay, err := r.relayOf(ctx, pipeline)
	if err != nil {
		return reconcile.Result{}, err
	}
	if pipeline.DeletionTimestamp != nil {
		return r.delete(ctx, pipeline, relay)
	}
	wanted := pipeline.Spec.DeletionPolicy == v1alpha1.DeletionPolicyDelete
	if written, err := apply.Finalizer(ctx, r.Client, pipeline, wanted); written || err != nil {
		return reconciling.Settled(err) // What was written comes back as an event.
	}
	made, err := r.resolve(pipeline, relay)
	if err != nil {
		return reconcile.Result{}, err
	}
	var problem *conditions.ChildProblem
	if made.objects != nil {
		if problem, err = r.Children.Make(ctx, pipeline, made.objects); err != nil {
			return reconciling.Settled(err)
		}
	}
	return r.report(ctx, pipeline, made, problem)
}

// relayOf is the OutboxRelay that a Pipeline names; nil: there is none.
func (r *Reconciler) relayOf(ctx context.Context, pipeline *v1alpha1.Pipeline) (*v1alpha1.OutboxRelay, error) {
	relay := &v1alpha1.OutboxRelay{}
	key := client.ObjectKey{Namespace: pipeline.Namespace, Name: pipeline.Spec.RelayRef.Name}
	err := r.Client.Get(ctx, key, relay)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // There is none.
	case err != nil:
		return nil, fmt.Errorf("read OutboxRelay %s: %w", key, err)
	default:
		return relay, nil
	}
}

// resolve is pure. A Pipeline whose OutboxRelay is missing or has mistakes keeps the pods that it has.
func (r *Reconciler) resolve(pipeline *v1alpha1.Pipeline, relay *v1alpha1.OutboxRelay) (resolved, error) {
	made := resolved{
		relay:  conditions.RelayReference{Name: pipeline.Spec.RelayRef.Name, State: stateOf(relay)},
		faults: resolve.CheckPipeline(pipeline, relay),
	}
	if relay != nil {
		made.key = resolve.PipelineKey(pipeline, relay)
		made.consumer = resolve.Consumer(made.key)
	}
	if len(made.faults) > 0 || made.relay.State != conditions.RelayFound {
		return made, nil
	}
	spec, err := resolve.Worker(pipeline, relay, desired.Mounts())
	if err != nil {
		made.faults = reconciling.Unreadable(err)
		return made, nil
	}
	made.revision = spec.Revision
	made.objects, err = desired.Worker(pipeline, relay, spec, r.Platform)
	if fault, ok := errors.AsType[*desired.FaultError](err); ok {
		made.faults, made.objects = []resolve.Fault{fault.Fault}, nil
		return made, nil
	}
	return made, err
}

func stateOf(relay *v1alpha1.OutboxRelay) conditions.RelayState {
	switch {
	case relay == nil:
		return conditions.RelayMissing
	case len(resolve.CheckRelay(relay)) > 0, meta.IsStatusConditionFalse(relay.Status.Conditions, conditions.TypeValid):
		return conditions.RelayInvalid
	default:
		return conditions.RelayFound
	}
}

func (r *Reconciler) report(ctx context.Context, pipeline *v1alpha1.Pipeline, made resolved,
	problem *conditions.ChildProblem,
) (reconcile.Result, error) {
	found, err := r.Children.Observe(ctx, pipeline, v1alpha1.KindPipeline, made.objects)
	if err != nil {
		return reconcile.Result{}, err
	}
	result := conditions.Pipeline(pipeline.Status.Conditions, conditions.Observed{
		Generation: pipeline.Generation, Deleting: pipeline.DeletionTimestamp != nil,
		Suspended: reconciling.Value(pipeline.Spec.Suspend, false),
		Replicas:  reconciling.Value(pipeline.Spec.Replicas, 1),
		Faults:    made.faults, Relay: made.relay, Child: problem,
		Deployment: found.Deployment, Pods: found.Pods, Daemon: found.Daemon,
	}, r.Now())
	after := pipeline.DeepCopy()
	after.Status.Conditions = result.Conditions
	after.Status.ObservedGeneration = pipeline.Generation
	after.Status.Selector = reconciling.Selector(naming.WorkerSelector(pipeline.Name))
	after.Status.Replicas = reconciling.Replicas(found)
	if made.key != "" {
		after.Status.Key, after.Status.Consumer = made.key, made.consumer
	}
	if made.revision != "" {
		after.Status.Revision = made.revision
	}
	if _, err := apply.Status(ctx, r.Client, pipeline, after); err != nil {
		return reconciling.Settled(err)
	}
	reconciling.Tell(r.Events, pipeline, result.Event)
	return reconciling.Again(result.Conditions, problem), nil
}

func (r *Reconciler) delete(ctx context.Context, pipeline *v1alpha1.Pipeline, relay *v1alpha1.OutboxRelay,
) (reconcile.Result, error) {
	if !cleanup.Holds(pipeline) {
		return reconcile.Result{}, nil
	}
	outcome, err := r.Cleaner.Run(ctx, pipeline, cleanup.Work{
		Deployment: naming.Worker(pipeline.Name), Selector: naming.WorkerSelector(pipeline.Name),
		Job: func() (*batchv1.Job, error) { return r.job(pipeline, relay) },
	})
	if err != nil {
		return reconciling.Settled(err)
	}
	if !outcome.Done {
		relay := conditions.RelayReference{Name: pipeline.Spec.RelayRef.Name, State: stateOf(relay)}
		_, err := r.report(ctx, pipeline, resolved{relay: relay}, nil)
		return reconcile.Result{RequeueAfter: outcome.Again}, err
	}
	written, err := apply.Finalizer(ctx, r.Client, pipeline, false)
	if written {
		cleanup.Tell(r.Events, pipeline, outcome)
	}
	return reconciling.Settled(client.IgnoreNotFound(err))
}

func (r *Reconciler) job(pipeline *v1alpha1.Pipeline, relay *v1alpha1.OutboxRelay) (*batchv1.Job, error) {
	if relay == nil {
		return nil, fmt.Errorf("OutboxRelay %s, which knows database and broker, is not there", pipeline.Spec.RelayRef.Name)
	}
	spec, err := resolve.Worker(pipeline, relay, desired.Mounts())
	if err != nil {
		return nil, err
	}
	return desired.WorkerCleanup(pipeline, relay, spec, r.Platform)
}

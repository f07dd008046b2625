package cleanup

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/relayops/relayops/internal/conditions"
	"github.com/relayops/relayops/internal/desired"
	"github.com/relayops/relayops/internal/naming"
)

// Cleaner runs cleanups.
type Cleaner struct {
	Client client.Client
	Now    func() time.Time
}

// Outcome of a cleanup.
type Outcome struct {
	// Done: the resource may go.
	Done bool
	// Left says, where something is left, why; empty: nothing is.
	Left string
	// Again is when to look again, where it is not done.
	Again time.Duration
}

// lookAgain is how often a cleanup is looked at beside the watches.
const lookAgain = 5 * time.Second

// missingSecret is in what a cleanup says that has no credentials: waiting for them would be waiting for ever.
const missingSecret = "SecretMissing"

// Work is what there is to clean up.
type Work struct {
	// Deployment is the name of the resource's own, whose pods Selector finds.
	Deployment string
	Selector   map[string]string
	// Job gives the Job. Its error says why none can be made; the resource goes then.
	Job func() (*batchv1.Job, error)
}

// Holds tells whether a cleanup holds the resource back.
func Holds(object client.Object) bool {
	return controllerutil.ContainsFinalizer(object, naming.Finalizer)
}

// Tell records what came of a cleanup.
func Tell(recorder events.EventRecorder, object runtime.Object, outcome Outcome) {
	if outcome.Left == "" {
		recorder.Eventf(object, nil, corev1.EventTypeNormal, conditions.EventCleanedUp, "Cleanup",
			"what it had in broker and database is removed")
		return
	}
	recorder.Eventf(object, nil, corev1.EventTypeWarning, conditions.EventCleanupAbandoned, "Cleanup",
		"what it has in broker and database is left: %s", outcome.Left)
}

// Run takes the cleanup of a resource that is being deleted one step on.
func (c *Cleaner) Run(ctx context.Context, owner client.Object, work Work) (Outcome, error) {
	left := owner.GetDeletionTimestamp().Add(desired.CleanupTime).Sub(c.Now())
	if left <= 0 {
		return Outcome{Done: true, Left: fmt.Sprintf("the cleanup was not done within %s", desired.CleanupTime)}, nil
	}
	again := Outcome{Again: min(left, lookAgain)}
	stopped, err := c.stop(ctx, owner, work.Deployment, work.Selector)
	if err != nil || !stopped {
		return again, err
	}
	wanted, err := work.Job()
	if err != nil {
		return Outcome{Done: true, Left: err.Error()}, nil //nolint:nilerr // It is told in an Event.
	}
	live, err := c.start(ctx, owner, wanted)
	switch {
	case err != nil && gone(err):
		return Outcome{Done: true, Left: "the namespace is being deleted, and no cleanup can run in it"}, nil
	case err != nil:
		return again, err
	case live == nil:
		return again, nil
	}
	return c.judge(ctx, live, again)
}

// stop ends the resource's own pods: a relay would make its stream anew. It reports whether all are gone.
func (c *Cleaner) stop(ctx context.Context, owner client.Object, workload string, selector map[string]string,
) (bool, error) {
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: owner.GetNamespace(), Name: workload}
	err := c.Client.Get(ctx, key, deployment)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read Deployment %s: %w", workload, err)
	}
	if err == nil && metav1.IsControlledBy(deployment, owner) && deployment.DeletionTimestamp == nil {
		err := c.Client.Delete(ctx, deployment, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("delete Deployment %s: %w", workload, err)
		}
	}
	var pods corev1.PodList
	err = c.Client.List(ctx, &pods, client.InNamespace(owner.GetNamespace()), client.MatchingLabels(selector))
	if err != nil {
		return false, fmt.Errorf("list pods: %w", err)
	}
	return len(pods.Items) == 0, nil
}

// start makes the Job unless it is there. One that an earlier resource of the same name left is removed first: nil, and
// no error.
func (c *Cleaner) start(ctx context.Context, owner client.Object, wanted *batchv1.Job) (*batchv1.Job, error) {
	live := &batchv1.Job{}
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	switch {
	case apierrors.IsNotFound(err):
		if err := c.Client.Create(ctx, wanted, client.FieldOwner(naming.FieldOwner)); !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
		return nil, nil //nolint:nilnil // It is there, and the cache does not show it yet.
	case err != nil:
		return nil, fmt.Errorf("read Job %s: %w", wanted.Name, err)
	case live.Annotations[naming.AnnotationOwner] == string(owner.GetUID()):
		return live, nil
	}
	err = c.Client.Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return nil, client.IgnoreNotFound(err)
}

// judge reads the Job's end.
func (c *Cleaner) judge(ctx context.Context, job *batchv1.Job, again Outcome) (Outcome, error) {
	for _, condition := range job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		if condition.Type == batchv1.JobComplete {
			return Outcome{Done: true}, nil
		}
		if condition.Type == batchv1.JobFailed {
			words, err := c.lastWords(ctx, job)
			return Outcome{Done: true, Left: "the cleanup failed" + words}, err
		}
	}
	words, err := c.lastWords(ctx, job)
	if err == nil && strings.Contains(words, missingSecret) {
		return Outcome{Done: true, Left: "the cleanup has no credentials" + words}, nil
	}
	return again, err
}

// maxWords bounds what an Event shows of a cleanup's own words, in bytes.
const maxWords = 512

// lastWords is what the Job's pods said when they ended.
func (c *Cleaner) lastWords(ctx context.Context, job *batchv1.Job) (string, error) {
	var pods corev1.PodList
	err := c.Client.List(ctx, &pods, client.InNamespace(job.Namespace),
		client.MatchingLabels{batchv1.JobNameLabel: job.Name})
	if err != nil {
		return "", fmt.Errorf("list the pods of Job %s: %w", job.Name, err)
	}
	for i := range pods.Items {
		for _, status := range pods.Items[i].Status.ContainerStatuses {
			if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
				words := strings.TrimSpace(ended.Message)
				return ": " + words[:min(len(words), maxWords)], nil
			}
		}
	}
	return "", nil
}

// gone tells of a namespace that is being deleted.
func gone(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err)
}

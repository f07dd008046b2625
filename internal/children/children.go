// Package children makes the objects that a resource drives, and looks at what became of them: Deployment, pods, and
// the daemon's own word. It is the I/O between two pure packages: desired before it, conditions after it.
package children

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/apply"
	"github.com/relayops/relayops/internal/conditions"
	"github.com/relayops/relayops/internal/desired"
	"github.com/relayops/relayops/internal/naming"
	"github.com/relayops/relayops/internal/statusclient"
)

// Children are those of all resources.
type Children struct {
	Client  client.Client
	Applier *apply.Applier
	Poller  *statusclient.Poller
}

// Make applies the desired objects and prunes the others. A problem is what a condition tells; the error is worth
// another try.
func (c *Children) Make(ctx context.Context, owner metav1.Object, objects []desired.Object,
) (*conditions.ChildProblem, error) {
	err := c.Applier.Apply(ctx, owner, objects)
	if err == nil {
		err = c.Applier.Prune(ctx, owner, objects)
	}
	return apply.ProblemOf(err)
}

// Observation is what became of the children.
type Observation struct {
	Deployment *appsv1.Deployment
	Pods       []corev1.Pod
	Daemon     conditions.Daemon
}

// Observe looks at the Deployment of a resource and at its pods, and at what the daemon told last. The daemon is asked
// again and again for as long as there are pods. objects are what was made, nil where nothing was.
func (c *Children) Observe(ctx context.Context, owner client.Object, kind string, objects []desired.Object,
) (Observation, error) {
	target := statusclient.Target{Kind: kind, Namespace: owner.GetNamespace(), Name: owner.GetName()}
	name, selector := naming.Relay(owner.GetName()), naming.RelaySelector(owner.GetName())
	if kind == v1alpha1.KindPipeline {
		name, selector = naming.Worker(owner.GetName()), naming.WorkerSelector(owner.GetName())
	}
	found := Observation{Deployment: &appsv1.Deployment{}}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: name}, found.Deployment)
	if client.IgnoreNotFound(err) != nil {
		return Observation{}, fmt.Errorf("read Deployment %s: %w", name, err)
	}
	if apierrors.IsNotFound(err) || !metav1.IsControlledBy(found.Deployment, owner) {
		c.Poller.Forget(target)
		return Observation{}, nil
	}
	if behind(found.Deployment, objects) {
		// Its status is of what it was before.
		found.Deployment = found.Deployment.DeepCopy()
		found.Deployment.Status.ObservedGeneration = 0
	}
	if found.Pods, err = c.pods(ctx, owner.GetNamespace(), selector); err != nil {
		return Observation{}, err
	}
	if found.Deployment.Status.Replicas == 0 {
		c.Poller.Forget(target)
		return found, nil
	}
	found.Daemon = c.Poller.Latest(target, epoch(found.Deployment))
	return found, nil
}

// epoch changes when another answer is to be expected of the daemon.
func epoch(d *appsv1.Deployment) string {
	return fmt.Sprint(d.Generation, d.Status.UpdatedReplicas, d.Status.AvailableReplicas > 0)
}

// behind: the cache does not show yet what was applied.
func behind(live *appsv1.Deployment, objects []desired.Object) bool {
	for _, object := range objects {
		if _, isDeployment := object.(*appsv1.Deployment); !isDeployment {
			continue
		}
		document, err := apply.Document(object)
		return err != nil ||
			document.GetAnnotations()[naming.AnnotationDesiredHash] != live.Annotations[naming.AnnotationDesiredHash]
	}
	return false
}

// Forget ends what is known of a resource that is gone.
func (c *Children) Forget(kind string, key client.ObjectKey) {
	c.Poller.Forget(statusclient.Target{Kind: kind, Namespace: key.Namespace, Name: key.Name})
}

// pods are those that are not on their way out.
func (c *Children) pods(ctx context.Context, namespace string, selector map[string]string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := c.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels(selector))
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil }), nil
}

package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relayops/relayops/internal/desired"
)

// IndexController is the cache's index of children by the UID of the resource that controls them.
const IndexController = "metadata.controllerUID"

// ControllerUID is the value of [IndexController].
func ControllerUID(object client.Object) []string {
	if controller := metav1.GetControllerOf(object); controller != nil {
		return []string{string(controller.UID)}
	}
	return nil
}

// Prune removes the children of the owner that are not among the desired objects. The error names the first that could
// not be removed.
func (a *Applier) Prune(ctx context.Context, owner metav1.Object, objects []desired.Object) error {
	wanted := make(map[string]bool, len(objects))
	for _, object := range objects {
		wanted[Title(object)] = true
	}
	for _, kind := range a.Kinds {
		if err := a.prune(ctx, owner, kind, wanted); err != nil {
			return err
		}
	}
	return nil
}

func (a *Applier) prune(ctx context.Context, owner metav1.Object, kind client.ObjectList, wanted map[string]bool,
) error {
	list := kind.DeepCopyObject().(client.ObjectList)
	err := a.Client.List(ctx, list, client.InNamespace(owner.GetNamespace()),
		client.MatchingFields{IndexController: string(owner.GetUID())})
	if err != nil {
		return fmt.Errorf("list the children of %s: %w", owner.GetName(), err)
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		child := item.(client.Object)
		title, err := a.title(child)
		if err != nil || wanted[title] || child.GetDeletionTimestamp() != nil {
			return err
		}
		err = a.Client.Delete(ctx, child, client.Preconditions{UID: uidOf(child)},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil && !apierrors.IsNotFound(err) {
			return &ChildError{Object: title, Err: err}
		}
		return nil
	})
}

// title of an object that was read: its kind is not set where it is typed.
func (a *Applier) title(object client.Object) (string, error) {
	kind, err := a.Client.GroupVersionKindFor(object)
	if err != nil {
		return "", fmt.Errorf("kind of %s: %w", object.GetName(), err)
	}
	return kind.Kind + " " + object.GetName(), nil
}

func uidOf(object client.Object) *types.UID {
	uid := object.GetUID()
	return &uid
}

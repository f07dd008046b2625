package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/relayops/relayops/internal/naming"
)

// Status writes the status in which after differs from before, and nothing where it does not. It is a merge patch and
// no server-side apply: a patch leaves the fields of a newer CustomResourceDefinition alone and loses those that an
// older one does not know, where an apply would be refused altogether.
//
// The patch holds for the version that before was read with. A conflict means that the cache was behind; its error is
// the API server's.
func Status(ctx context.Context, c client.Client, before, after client.Object) (written bool, err error) {
	if equality.Semantic.DeepEqual(before, after) {
		return false, nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err = c.Status().Patch(ctx, after.DeepCopyObject().(client.Object), patch, client.FieldOwner(naming.FieldOwner))
	if err != nil {
		return false, fmt.Errorf("status of %s: %w", client.ObjectKeyFromObject(before), err)
	}
	return true, nil
}

// Finalizer sets or removes [naming.Finalizer], and writes nothing where it is as wanted. It reports whether it wrote.
func Finalizer(ctx context.Context, c client.Client, object client.Object, wanted bool) (written bool, err error) {
	if controllerutil.ContainsFinalizer(object, naming.Finalizer) == wanted {
		return false, nil
	}
	changed := object.DeepCopyObject().(client.Object)
	if wanted {
		controllerutil.AddFinalizer(changed, naming.Finalizer)
	} else {
		controllerutil.RemoveFinalizer(changed, naming.Finalizer)
	}
	patch := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, changed, patch, client.FieldOwner(naming.FieldOwner)); err != nil {
		return false, fmt.Errorf("finalizer of %s: %w", client.ObjectKeyFromObject(object), err)
	}
	return true, nil
}

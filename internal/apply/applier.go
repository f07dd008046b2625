package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relayops/relayops/internal/desired"
	"github.com/relayops/relayops/internal/naming"
)

// ErrBeingCollected means that the live object belongs to a deleted resource of the same name and is about to go.
var ErrBeingCollected = errors.New("it belongs to a deleted resource of the same name, and is about to go")

// OwnedByOtherError means that an object with the name of a child is somebody else's. It was left alone.
type OwnedByOtherError struct {
	// Object is its kind and name.
	Object string
	// Owner is who controls it, such as "Deployment shop"; empty: nobody, and the operator did not make it.
	Owner string
}

func (e *OwnedByOtherError) Error() string { return e.Object + ": " + e.owner() }

func (e *OwnedByOtherError) owner() string {
	if e.Owner == "" {
		return "it is there already, and the operator did not make it; it is left alone"
	}
	return "it is controlled by " + e.Owner + ", and is left alone"
}

// ChildError means that the API server did not take a child.
type ChildError struct {
	// Object is its kind and name.
	Object string
	// Err is what the API server said.
	Err error
}

func (e *ChildError) Error() string { return e.Object + ": " + e.Err.Error() }

// Unwrap gives what the API server said.
func (e *ChildError) Unwrap() error { return e.Err }

// Applier applies and prunes children.
type Applier struct {
	// Client writes, and reads from the operator's cache, which holds what carries our labels.
	Client client.Client
	// Live reads from the API server itself: before an object is made, for one that the cache does not hold.
	Live client.Reader
	// Kinds are empty lists of every kind that a child can have. The cache indexes them by [IndexController].
	Kinds []client.ObjectList
}

// Apply makes every desired object live, in their order. The first that cannot be made ends it, with an
// [OwnedByOtherError] or a [ChildError] that wraps what the API server said.
func (a *Applier) Apply(ctx context.Context, owner metav1.Object, objects []desired.Object) error {
	for _, object := range objects {
		if err := a.one(ctx, owner, object); err != nil {
			return err
		}
	}
	return nil
}

func (a *Applier) one(ctx context.Context, owner metav1.Object, object desired.Object) error {
	document, err := Document(object)
	if err != nil {
		return err
	}
	live, err := a.live(ctx, object)
	if err != nil {
		return &ChildError{Object: Title(object), Err: err}
	}
	if live != nil {
		if err := mayWrite(owner, live, Title(object)); err != nil {
			return err
		}
		same, err := isSame(live, document)
		if err != nil || same {
			return err
		}
		// Another object of this name, made since, is a conflict.
		document.SetUID(live.GetUID())
	}
	err = a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(document), client.ForceOwnership,
		client.FieldOwner(naming.FieldOwner))
	if err != nil {
		return &ChildError{Object: Title(object), Err: err}
	}
	return nil
}

// live is the object as it is; nil: there is none. What the cache does not hold is looked up at the API server once: it
// may be somebody else's, without our labels.
func (a *Applier) live(ctx context.Context, object desired.Object) (client.Object, error) {
	found, err := a.empty(object)
	if err != nil {
		return nil, err
	}
	key := client.ObjectKey{Namespace: object.GetNamespace(), Name: object.GetName()}
	err = a.Client.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		err = a.Live.Get(ctx, key, found)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // There is none.
	case err != nil:
		return nil, err
	default:
		return found, nil
	}
}

func (a *Applier) empty(object desired.Object) (client.Object, error) {
	kind := object.GetObjectKind().GroupVersionKind()
	if _, untyped := object.(*unstructured.Unstructured); untyped {
		empty := &unstructured.Unstructured{}
		empty.SetGroupVersionKind(kind)
		return empty, nil
	}
	made, err := a.Client.Scheme().New(kind)
	if err != nil {
		return nil, fmt.Errorf("kind %s: %w", kind.Kind, err)
	}
	return made.(client.Object), nil
}

// mayWrite: the object is ours, or nobody's and made by us (an orphan of a resource that was deleted without its
// children).
func mayWrite(owner metav1.Object, live client.Object, title string) error {
	controller := metav1.GetControllerOf(live)
	made := live.GetLabels()[naming.LabelManagedBy] == naming.ManagedBy &&
		live.GetAnnotations()[naming.AnnotationDesiredHash] != ""
	switch {
	case controller == nil && made:
		return nil
	case controller == nil:
		return &OwnedByOtherError{Object: title}
	case controller.UID == owner.GetUID():
		return nil
	case controller.Name == owner.GetName() && made:
		return &ChildError{Object: title, Err: ErrBeingCollected}
	default:
		return &OwnedByOtherError{Object: title, Owner: controller.Kind + " " + controller.Name}
	}
}

// isSame reports whether applying the document would change nothing.
func isSame(live client.Object, document *unstructured.Unstructured) (bool, error) {
	if live.GetDeletionTimestamp() != nil {
		return true, nil // Nothing brings it back; it is made anew once it is gone.
	}
	hash := document.GetAnnotations()[naming.AnnotationDesiredHash]
	if live.GetAnnotations()[naming.AnnotationDesiredHash] != hash {
		return false, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false, fmt.Errorf("live %s: as a document: %w", live.GetName(), err)
	}
	wanted := document.Object
	// The kind of a typed object that was read is not set.
	return containsFields(content, withoutKind(wanted)), nil
}

func withoutKind(document map[string]any) map[string]any {
	kept := make(map[string]any, len(document))
	for name, value := range document {
		if name != "kind" && name != "apiVersion" {
			kept[name] = value
		}
	}
	return kept
}

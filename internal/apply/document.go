package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/relayops/relayops/internal/desired"
	"github.com/relayops/relayops/internal/naming"
)

// Document is a desired object as it is sent: without the status, without fields that hold nothing, and with the hash
// of the rest as an annotation. The object itself stays as it is.
func Document(object desired.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("%s: as a document: %w", Title(object), err)
	}
	delete(content, "status")
	document := &unstructured.Unstructured{Object: withoutNothing(content).(map[string]any)}
	text, err := json.Marshal(document.Object)
	if err != nil {
		return nil, fmt.Errorf("%s: as JSON: %w", Title(object), err)
	}
	sum := sha256.Sum256(text)
	annotations := document.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[naming.AnnotationDesiredHash] = hex.EncodeToString(sum[:])
	document.SetAnnotations(annotations)
	return document, nil
}

// Title names an object for a person, such as "Deployment orders-relay".
func Title(object desired.Object) string {
	return object.GetObjectKind().GroupVersionKind().Kind + " " + object.GetName()
}

// withoutNothing drops nulls, which typed objects have where a field is left out. An empty object says something in
// some places (emptyDir: {}) and stays, but for those that no builder sets.
func withoutNothing(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		for name, one := range value {
			if one != nil && !isLeftOut(name, one) {
				kept[name] = withoutNothing(one)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, one := range value {
			kept[i] = withoutNothing(one)
		}
		return kept
	default:
		return value
	}
}

// isLeftOut tells of fields whose Go types are no pointers: they are written even when nothing is set.
func isLeftOut(name string, value any) bool {
	fields, isObject := value.(map[string]any)
	return isObject && len(fields) == 0 && (name == "resources" || name == "strategy" || name == "metadata")
}

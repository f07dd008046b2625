package apply

import (
	"k8s.io/apimachinery/pkg/api/equality"
)

// mergeKeys are the fields by which the elements of lists are told apart, in the order in which they are tried: two
// mounts may have one name. Others may add elements to such a list (a sidecar), or fields to its elements (defaults).
var mergeKeys = []string{"uid", "mountPath", "name", "containerPort"}

// contains reports whether everything that is desired is found, with the same value. The API server may have added
// fields beside it.
func contains(found, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		found, same := found.(map[string]any)
		return same && containsFields(found, wanted)
	case []any:
		found, same := found.([]any)
		return same && containsItems(found, wanted)
	default:
		return equality.Semantic.DeepEqual(found, wanted)
	}
}

func containsFields(found, wanted map[string]any) bool {
	for name, one := range wanted {
		other, exists := found[name]
		if !exists || !contains(other, one) {
			return false
		}
	}
	return true
}

func containsItems(found, wanted []any) bool {
	if key := mergeKey(wanted); key != "" {
		for _, one := range wanted {
			other := itemOf(found, key, one.(map[string]any)[key])
			if other == nil || !contains(other, one) {
				return false
			}
		}
		return true
	}
	if len(found) != len(wanted) {
		return false
	}
	for i, one := range wanted {
		if !contains(found[i], one) {
			return false
		}
	}
	return true
}

// mergeKey is the first of the keys that all elements have; empty: the list is one value.
func mergeKey(list []any) string {
	for _, key := range mergeKeys {
		if allHave(list, key) {
			return key
		}
	}
	return ""
}

func allHave(list []any, key string) bool {
	for _, one := range list {
		fields, isObject := one.(map[string]any)
		if !isObject || fields[key] == nil {
			return false
		}
	}
	return len(list) > 0
}

func itemOf(list []any, key string, value any) any {
	for _, one := range list {
		if fields, isObject := one.(map[string]any); isObject && equality.Semantic.DeepEqual(fields[key], value) {
			return one
		}
	}
	return nil
}

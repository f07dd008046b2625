package manifest

import (
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// withoutExcess gives the value with each list cut to the length that its schema allows, and a fault for each that was
// longer. The API server's validation takes time that grows with the square of the mistakes; of a list that has to be
// cut anyway it need not see the rest. The value itself stays as it is.
func withoutExcess(path *field.Path, value any, at *schema.Structural) (any, field.ErrorList) {
	if at == nil {
		return value, nil
	}
	switch value := value.(type) {
	case map[string]any:
		return fieldsWithoutExcess(path, value, at)
	case []any:
		return itemsWithoutExcess(path, value, at)
	default:
		return value, nil
	}
}

func fieldsWithoutExcess(path *field.Path, value map[string]any, at *schema.Structural) (any, field.ErrorList) {
	var faults field.ErrorList
	kept := make(map[string]any, len(value))
	for name, one := range value {
		below, faultsBelow := withoutExcess(path.Child(name), one, childSchema(at, name))
		kept[name] = below
		faults = append(faults, faultsBelow...)
	}
	return kept, faults
}

func itemsWithoutExcess(path *field.Path, value []any, at *schema.Structural) (any, field.ErrorList) {
	var faults field.ErrorList
	if at.ValueValidation != nil && at.ValueValidation.MaxItems != nil {
		if most := *at.ValueValidation.MaxItems; int64(len(value)) > most {
			faults = append(faults, field.TooMany(path, len(value), int(most)))
			value = value[:most]
		}
	}
	kept := make([]any, len(value))
	for i, one := range value {
		below, faultsBelow := withoutExcess(path.Index(i), one, at.Items)
		kept[i] = below
		faults = append(faults, faultsBelow...)
	}
	return kept, faults
}

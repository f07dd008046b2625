package webhook

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/resolve"
)

// refusal is the API server's kind of answer for mistakes; nil: there are none.
func refusal(kind, name string, faults []resolve.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	list := make(field.ErrorList, len(faults))
	for i, fault := range faults {
		list[i] = &field.Error{
			Type: field.ErrorTypeInvalid, Field: fault.Field, BadValue: field.OmitValueType{}, Detail: words(fault),
		}
	}
	return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(kind).GroupKind(), name, list)
}

func words(fault resolve.Fault) string { return "found " + fault.Found + "; allowed: " + fault.Allowed }

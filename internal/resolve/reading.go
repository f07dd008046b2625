package resolve

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/runspec"
)

// reading takes values out of a resource and remembers what could not be read.
type reading struct{ faults []error }

func (r *reading) err() error { return errors.Join(r.faults...) }

func (r *reading) duration(field string, text v1alpha1.Duration) runspec.Duration {
	d, err := text.Std()
	if err != nil {
		r.faults = append(r.faults, fmt.Errorf("spec.%s: %w", field, err))
	}
	return runspec.Duration(d)
}

func (r *reading) bytes(field string, quantity *resource.Quantity) int64 {
	if quantity == nil {
		r.faults = append(r.faults, fmt.Errorf("spec.%s: found nothing; allowed: a number of bytes, such as 512Ki", field))
		return 0
	}
	return quantity.Value()
}

// std is a duration of a resource that passed the schema.
func std(text v1alpha1.Duration) time.Duration {
	d, err := text.Std()
	if err != nil {
		return 0
	}
	return d
}

package stream

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// comparison collects how an object differs from what is wanted.
type comparison struct {
	// fixed fields are ones that the broker cannot change, risky ones would drop messages, the others can be repaired.
	fixed, risky, repairable []FieldChange
}

func (c *comparison) differs() bool { return len(c.fixed)+len(c.risky)+len(c.repairable) > 0 }

// changes are all differences that an update repairs.
func (c *comparison) changes() []FieldChange { return slices.Concat(c.risky, c.repairable) }

func compare[T comparable](to *[]FieldChange, field string, found, wanted T) {
	if found != wanted {
		*to = append(*to, FieldChange{field, fmt.Sprint(found), fmt.Sprint(wanted)})
	}
}

// compareSet compares without order.
func compareSet(to *[]FieldChange, field string, found, wanted []string) {
	compare(to, field, strings.Join(slices.Sorted(slices.Values(found)), " "),
		strings.Join(slices.Sorted(slices.Values(wanted)), " "))
}

func withMark(metadata map[string]string, key, value string) map[string]string {
	marked := maps.Clone(metadata)
	if marked == nil {
		marked = make(map[string]string, 1)
	}
	marked[key] = value
	return marked
}

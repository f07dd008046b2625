package resolve

import (
	"maps"
	"slices"
	"strings"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/v1alpha1"
)

// eventTrigger begins the trigger of every event type that an OutboxRelay does not map.
const eventTrigger = "event."

// EventTypes are the event types of a trigger, sorted: those that triggers maps to it, and T for the trigger event.T
// unless T is mapped to another. None: no event has this trigger.
func EventTypes(trigger v1alpha1.TriggerName, triggers map[string]v1alpha1.TriggerName) []string {
	var types []string
	for eventType, mapped := range triggers {
		if mapped == trigger {
			types = append(types, eventType)
		}
	}
	if eventType, ok := strings.CutPrefix(string(trigger), eventTrigger); ok && event.ValidType(eventType) {
		if _, mapped := triggers[eventType]; !mapped {
			types = append(types, eventType)
		}
	}
	slices.Sort(types)
	return types
}

// triggersOf are the triggers that are mapped to, sorted, each once.
func triggersOf(triggers map[string]v1alpha1.TriggerName) []string {
	names := make(map[string]bool, len(triggers))
	for _, trigger := range triggers {
		names[string(trigger)] = true
	}
	return slices.Sorted(maps.Keys(names))
}

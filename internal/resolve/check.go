package resolve

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node"
)

// Fault is one mistake in a resource.
type Fault struct {
	// Field is a path from the resource, such as spec.nodes[1].config.url.
	Field string
	// Found and Allowed are phrases for a person.
	Found, Allowed string
}

// CheckRelay finds what neither schema nor CEL can say of an OutboxRelay.
func CheckRelay(relay *v1alpha1.OutboxRelay) []Fault {
	var faults []Fault
	if err := table(relay.Spec.Table).Validate(); err != nil {
		for _, one := range unjoin(err) {
			faults = append(faults, tableFault(one))
		}
	}
	return faults
}

func unjoin(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}

// tableFault takes an error of api/outbox apart: "table.columns.x: found …, allowed: …".
func tableFault(err error) Fault {
	field, rest, _ := strings.Cut(err.Error(), ": found ")
	found, allowed, _ := strings.Cut(rest, ", allowed: ")
	return Fault{Field: "spec." + field, Found: found, Allowed: allowed}
}

// CheckPipeline finds what neither schema nor CEL can say of a Pipeline with its relay. A relay of nil is one that
// does not exist, which is a mistake of its own: whoever calls reports it.
func CheckPipeline(pipeline *v1alpha1.Pipeline, relay *v1alpha1.OutboxRelay) []Fault {
	faults := append(checkGraph(pipeline), checkTimeouts(pipeline)...)
	faults = append(faults, checkOrgs(pipeline, relay)...)
	if relay != nil {
		faults = append(faults, checkTrigger(pipeline, relay)...)
		faults = append(faults, checkRetryHorizon(pipeline, relay)...)
	}
	return faults
}

func checkGraph(pipeline *v1alpha1.Pipeline) []Fault {
	definition, err := Definition(pipeline)
	if err != nil {
		return []Fault{{Field: "spec.nodes", Found: err.Error(), Allowed: "nodes whose config is JSON"}}
	}
	_, err = engine.Compile(definition, node.Types())
	if err == nil {
		return nil
	}
	var mistakes engine.FieldErrors
	if !errors.As(err, &mistakes) {
		return []Fault{{Field: "spec.nodes", Found: err.Error(), Allowed: "a graph that compiles"}}
	}
	faults := make([]Fault, len(mistakes))
	for i, mistake := range mistakes {
		field := "spec"
		if mistake.Field != "" {
			field += "." + mistake.Field
		}
		faults[i] = Fault{Field: field, Found: mistake.Found, Allowed: mistake.Allowed}
	}
	return faults
}

// checkTimeouts says which nodes break the rule that the schema has for all of them.
func checkTimeouts(pipeline *v1alpha1.Pipeline) []Fault {
	var faults []Fault
	for i, node := range pipeline.Spec.Nodes {
		if most := pipeline.Spec.PipelineTimeout; std(node.Timeout) > std(most) && std(most) > 0 {
			faults = append(faults, Fault{
				Field: fmt.Sprintf("spec.nodes[%d].timeout", i),
				Found: fmt.Sprintf("%s beside a pipelineTimeout of %s", node.Timeout, most), Allowed: "at most pipelineTimeout",
			})
		}
	}
	return faults
}

func checkOrgs(pipeline *v1alpha1.Pipeline, relay *v1alpha1.OutboxRelay) []Fault {
	var faults []Fault
	for i, org := range pipeline.Spec.Orgs {
		if len(org) > event.MaxTokenBytes {
			faults = append(faults, Fault{
				Field: fmt.Sprintf("spec.orgs[%d]", i), Found: fmt.Sprintf("%d bytes", len(org)),
				Allowed: fmt.Sprintf("at most %d bytes", event.MaxTokenBytes),
			})
		}
	}
	if len(pipeline.Spec.Orgs) == 0 && relay != nil && !value(relay.Spec.AllowAllOrgs) {
		faults = append(faults, Fault{
			Field: "spec.orgs", Found: "nothing, which means all organisations",
			Allowed: fmt.Sprintf("names of organisations, unless OutboxRelay %s has allowAllOrgs: true", relay.Name),
		})
	}
	return faults
}

func checkTrigger(pipeline *v1alpha1.Pipeline, relay *v1alpha1.OutboxRelay) []Fault {
	trigger := pipeline.Spec.Trigger
	if len(EventTypes(trigger, relay.Spec.Triggers)) > 0 {
		return nil
	}
	found := fmt.Sprintf("%q, which no event type of OutboxRelay %s has", trigger, relay.Name)
	if eventType, ok := strings.CutPrefix(string(trigger), eventTrigger); ok {
		if other, mapped := relay.Spec.Triggers[eventType]; mapped {
			found = fmt.Sprintf("%q, while OutboxRelay %s maps %s to %q", trigger, relay.Name, eventType, other)
		}
	}
	names := append(triggersOf(relay.Spec.Triggers), "event.T for an event type T that is not mapped")
	return []Fault{{Field: "spec.trigger", Found: found, Allowed: strings.Join(names, ", ")}}
}

// checkRetryHorizon: an execution whose retries outlast its message could not be delivered again when a worker dies.
func checkRetryHorizon(pipeline *v1alpha1.Pipeline, relay *v1alpha1.OutboxRelay) []Fault {
	horizon, maxAge := RetryHorizon(pipeline.Spec), std(relay.Spec.Stream.MaxAge)
	if horizon <= maxAge {
		return nil
	}
	return []Fault{{
		Field: "spec.retry",
		Found: fmt.Sprintf("attempts and back-off that may take %s", horizon.Round(time.Second)),
		Allowed: fmt.Sprintf("at most %s, the stream.maxAge of OutboxRelay %s: fewer attempts, a shorter backOff.max or "+
			"pipelineTimeout", relay.Spec.Stream.MaxAge, relay.Name),
	}}
}

// RetryHorizon is the longest time from an execution's first attempt to the end of its last: all back-offs at their
// longest, and the time that it may spend executing.
func RetryHorizon(spec v1alpha1.PipelineSpec) time.Duration {
	longest, wait := std(spec.Retry.BackOff.Max), std(spec.Retry.BackOff.Initial)
	jitter := 1 + float64(value(spec.Retry.BackOff.JitterPercent))/100
	horizon := std(spec.PipelineTimeout)
	for range spec.Retry.Attempts - 1 {
		horizon += time.Duration(float64(min(wait, longest)) * jitter)
		wait = min(wait, longest) * time.Duration(max(1, spec.Retry.BackOff.Multiplier))
	}
	return horizon
}

package worker

import (
	"slices"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/execution"
	"github.com/relayops/relayops/internal/runspec"
)

// relevance is whether an event is one for this pipeline.
type relevance string

const (
	relevant relevance = "relevant"
	// otherPipeline: a reprocess that is meant for another pipeline.
	otherPipeline relevance = "other_pipeline"
	// otherType: no trigger of this pipeline; otherOrg: an organisation that it does not serve.
	otherType relevance = "other_type"
	otherOrg  relevance = "other_org"
	// outsideSubscription: before the subscription began, or after it ended.
	outsideSubscription relevance = "outside_subscription"
)

// relevanceOf says whether an event is to be executed. A reprocess is a decision about one old event: where the
// subscription begins does not matter to it.
func relevanceOf(spec *runspec.Worker, subscription execution.Subscription, d *event.Delivery) relevance {
	switch {
	case d.PipelineKey != "" && d.PipelineKey != spec.PipelineKey:
		return otherPipeline
	case !slices.Contains(spec.Subscription.EventTypes, d.EventType):
		return otherType
	case len(spec.Subscription.Orgs) > 0 && !slices.Contains(spec.Subscription.Orgs, d.OrgID):
		return otherOrg
	case d.PipelineKey != "" || d.Position == 0:
		return relevant
	case d.Position < subscription.FromPosition,
		subscription.UntilPosition > 0 && d.Position >= subscription.UntilPosition:
		return outsideSubscription
	default:
		return relevant
	}
}

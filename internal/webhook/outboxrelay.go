package webhook

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/desired"
	"github.com/relayops/relayops/internal/resolve"
)

// +kubebuilder:webhook:path=/validate-relayops-io-v1alpha1-outboxrelay,mutating=false,failurePolicy=fail,sideEffects=None,groups=relayops.io,resources=outboxrelays,verbs=create;update,versions=v1alpha1,name=outboxrelays.relayops.io,admissionReviewVersions=v1,timeoutSeconds=10

// maxWarnings bounds the warnings of one answer.
const maxWarnings = 20

// OutboxRelays validates OutboxRelays.
type OutboxRelays struct {
	// Reader finds other OutboxRelays, and Pipelines.
	Reader client.Reader
}

// ValidateCreate refuses an OutboxRelay with mistakes, or in conflict with one that is there.
func (o *OutboxRelays) ValidateCreate(ctx context.Context, relay *v1alpha1.OutboxRelay) (admission.Warnings, error) {
	faults := resolve.CheckRelay(relay)
	var all v1alpha1.OutboxRelayList
	if err := o.Reader.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("list OutboxRelays: %w", err)
	}
	for i := range all.Items {
		other := &all.Items[i]
		if other.DeletionTimestamp == nil && (other.Namespace != relay.Namespace || other.Name != relay.Name) {
			faults = append(faults, resolve.Conflicts(relay, other, desired.Mounts())...)
		}
	}
	return nil, refusal(v1alpha1.KindOutboxRelay, relay.Name, faults)
}

// ValidateUpdate refuses a change of the specification to one with mistakes. It warns of Pipelines that have a mistake
// afterwards and had none before: they keep running as they are.
func (o *OutboxRelays) ValidateUpdate(ctx context.Context, before, after *v1alpha1.OutboxRelay,
) (admission.Warnings, error) {
	if after.DeletionTimestamp != nil || equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return nil, nil
	}
	if _, err := o.ValidateCreate(ctx, after); err != nil {
		return nil, err
	}
	var pipelines v1alpha1.PipelineList
	if err := o.Reader.List(ctx, &pipelines, client.InNamespace(after.Namespace)); err != nil {
		return nil, fmt.Errorf("list Pipelines: %w", err)
	}
	return broken(pipelines.Items, before, after), nil
}

func broken(pipelines []v1alpha1.Pipeline, before, after *v1alpha1.OutboxRelay) admission.Warnings {
	var warnings admission.Warnings
	for i := range pipelines {
		pipeline := &pipelines[i]
		if pipeline.Spec.RelayRef.Name != after.Name || len(resolve.CheckPipeline(pipeline, before)) > 0 {
			continue
		}
		for _, fault := range resolve.CheckPipeline(pipeline, after) {
			if len(warnings) == maxWarnings {
				return append(warnings, "more Pipelines have mistakes with this change")
			}
			warnings = append(warnings, fmt.Sprintf("Pipeline %s has a mistake with this change: %s: %s", pipeline.Name,
				fault.Field, words(fault)))
		}
	}
	return warnings
}

// ValidateDelete lets everything go.
func (o *OutboxRelays) ValidateDelete(context.Context, *v1alpha1.OutboxRelay) (admission.Warnings, error) {
	return nil, nil
}

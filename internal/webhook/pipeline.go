package webhook

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/resolve"
)

// +kubebuilder:webhook:path=/validate-relayops-io-v1alpha1-pipeline,mutating=false,failurePolicy=fail,sideEffects=None,groups=relayops.io,resources=pipelines,verbs=create;update,versions=v1alpha1,name=pipelines.relayops.io,admissionReviewVersions=v1,timeoutSeconds=10

// Pipelines validates Pipelines.
type Pipelines struct {
	// Reader finds OutboxRelays.
	Reader client.Reader
}

// ValidateCreate refuses a Pipeline with mistakes.
func (p *Pipelines) ValidateCreate(ctx context.Context, pipeline *v1alpha1.Pipeline) (admission.Warnings, error) {
	relay := &v1alpha1.OutboxRelay{}
	key := client.ObjectKey{Namespace: pipeline.Namespace, Name: pipeline.Spec.RelayRef.Name}
	var warnings admission.Warnings
	err := p.Reader.Get(ctx, key, relay)
	switch {
	case apierrors.IsNotFound(err):
		relay = nil
		warnings = append(warnings, fmt.Sprintf(
			"spec.relayRef.name: there is no OutboxRelay %s in namespace %s yet; it is waited for", key.Name, key.Namespace))
	case err != nil:
		return nil, fmt.Errorf("read OutboxRelay %s: %w", key, err)
	}
	return warnings, refusal(v1alpha1.KindPipeline, pipeline.Name, resolve.CheckPipeline(pipeline, relay))
}

// ValidateUpdate refuses a change of the specification to one with mistakes.
func (p *Pipelines) ValidateUpdate(ctx context.Context, before, after *v1alpha1.Pipeline) (admission.Warnings, error) {
	if after.DeletionTimestamp != nil || equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return nil, nil
	}
	return p.ValidateCreate(ctx, after)
}

// ValidateDelete lets everything go.
func (p *Pipelines) ValidateDelete(context.Context, *v1alpha1.Pipeline) (admission.Warnings, error) {
	return nil, nil
}

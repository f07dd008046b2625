package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of all kinds of RelayOps.
const Group = "relayops.io"

var (
	// GroupVersion of the types in this package.
	GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}
	// SchemeBuilder registers them.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers them with a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// The kinds.
const (
	KindOutboxRelay = "OutboxRelay"
	KindPipeline    = "Pipeline"
)

// Resource is the group resource of a plural, such as "pipelines".
func Resource(plural string) schema.GroupResource {
	return GroupVersion.WithResource(plural).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &OutboxRelay{}, &OutboxRelayList{}, &Pipeline{}, &PipelineList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

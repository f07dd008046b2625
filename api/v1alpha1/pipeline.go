package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pipeline runs a graph of nodes for each event of its trigger.
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=relayops
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Trigger",type=string,JSONPath=`.spec.trigger`
// +kubebuilder:printcolumn:name="Relay",type=string,JSONPath=`.spec.relayRef.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.revision`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="found a name of more than 63 characters; allowed: at most 63, so that it fits a label"
type Pipeline struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	// +required
	Spec PipelineSpec `json:"spec,omitzero"`
	// status is what the operator found.
	// +optional
	// +default={"conditions":[{"type":"Ready","status":"Unknown","reason":"Pending","message":"the operator has not looked at it yet","lastTransitionTime":"1970-01-01T00:00:00Z"}]}
	Status PipelineStatus `json:"status,omitzero"`
}

// PipelineList is a list of Pipelines.
// +kubebuilder:object:root=true
type PipelineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Pipeline `json:"items"`
}

// PipelineSpec is what is wanted of a pipeline.
// +kubebuilder:validation:XValidation:rule="(self.startFrom == 'Time') == has(self.startTime)",message="found startFrom Time without startTime, or startTime without startFrom Time; allowed: both or none",fieldPath=".startTime"
// +kubebuilder:validation:XValidation:rule="has(self.startTime) == has(oldSelf.startTime) && (!has(self.startTime) || self.startTime == oldSelf.startTime)",message="startTime is immutable; allowed: what it was, or another Pipeline",fieldPath=".startTime"
// +kubebuilder:validation:XValidation:rule="duration(self.stepTimeout) <= duration(self.pipelineTimeout)",messageExpression="'found ' + self.stepTimeout + ' beside a pipelineTimeout of ' + self.pipelineTimeout + '; allowed: at most pipelineTimeout'",fieldPath=".stepTimeout"
// +kubebuilder:validation:XValidation:rule="self.nodes.all(n, !has(n.timeout) || duration(n.timeout) <= duration(self.pipelineTimeout))",messageExpression="'found a node timeout above the pipelineTimeout of ' + self.pipelineTimeout + '; allowed: at most pipelineTimeout'",fieldPath=".nodes"
// +kubebuilder:validation:XValidation:rule="!has(self.edges) || [self.nodes.map(n, n.id)].all(ids, self.edges.all(e, e.from in ids && e.to in ids))",message="found an edge that begins or ends at no node; allowed: ids of nodes",fieldPath=".edges"
type PipelineSpec struct {
	// relayRef names the OutboxRelay whose events the pipeline gets. Immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="relayRef is immutable; allowed: what it was, or another Pipeline"
	RelayRef LocalRelayRef `json:"relayRef,omitzero"`
	// trigger is what the pipeline runs on: a trigger of the OutboxRelay's triggers, or event.T for events of type T
	// that are not listed there.
	// +required
	Trigger TriggerName `json:"trigger,omitempty"`
	// orgs are the organisations whose events the pipeline gets, by their exact names. Empty means all, which the
	// OutboxRelay has to permit with allowAllOrgs.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	Orgs []OrgName `json:"orgs,omitempty"`
	// startFrom is where the subscription begins: with events committed from Now on, at the Beginning of what the
	// stream holds, or at a Time. Immutable.
	// +optional
	// +default="Now"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="startFrom is immutable; allowed: what it was, or another Pipeline"
	StartFrom StartFrom `json:"startFrom,omitempty"`
	// startTime is where startFrom Time begins. Immutable.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// nodes are the steps. One is of type start.
	// +required
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Nodes []Node `json:"nodes,omitempty"`
	// edges lead from node to node.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Edges []Edge `json:"edges,omitempty"`
	// retry is how often and when a failed execution is tried again.
	// +optional
	// +default={}
	Retry Retry `json:"retry,omitzero"`
	// stepTimeout bounds each step that has no timeout of its own, from 1ms to 1h.
	// +optional
	// +default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('1h')",messageExpression="'found ' + self + '; allowed: from 1ms to 1h'"
	StepTimeout Duration `json:"stepTimeout,omitempty"`
	// pipelineTimeout bounds the time that one execution spends executing, all its attempts together, from 1ms to
	// 24h. Waiting (back-off, queue) does not count.
	// +optional
	// +default="15m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('24h')",messageExpression="'found ' + self + '; allowed: from 1ms to 24h'"
	PipelineTimeout Duration `json:"pipelineTimeout,omitempty"`
	// deadline is how long after its event occurred an execution may still begin an attempt, from 1s to 10000h, by
	// the wall clock. What is later is cancelled. Without it there is none.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('10000h')",messageExpression="'found ' + self + '; allowed: from 1s to 10000h'"
	Deadline Duration `json:"deadline,omitempty"`
	// concurrency is how many executions one worker runs at once.
	// +optional
	// +default=4
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Concurrency int32 `json:"concurrency,omitempty"`
	// http is what http-request nodes may reach, and how much they read.
	// +optional
	// +default={}
	HTTP HTTPPolicy `json:"http,omitzero"`
	// deletionPolicy says what becomes of the consumer and of the subscription when this resource is deleted. Keep
	// leaves them, and a Pipeline of the same name goes on where this one stopped. Delete removes them, and a Pipeline
	// of the same name begins anew, with startFrom; where that is not done within five minutes, or cannot be, the
	// resource goes all the same, and an Event says what was left. The ledger keeps every execution either way.
	// +optional
	// +default="Keep"
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// suspend stops the pipeline. It stays subscribed, and events accumulate.
	// +optional
	// +default=false
	Suspend *bool `json:"suspend,omitempty"`
	// replicas is how many workers run.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Replicas *int32 `json:"replicas,omitempty"`
	// podTemplate is what can be chosen of the workers' pods.
	// +optional
	PodTemplate *PodTemplate `json:"podTemplate,omitempty"`
}

// LocalRelayRef names an OutboxRelay of the same namespace.
type LocalRelayRef struct {
	// name of the OutboxRelay.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`
}

// OrgName is an organisation's exact name, at most 128 bytes.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f]+$`
type OrgName string

// StartFrom is where a subscription begins.
// +kubebuilder:validation:Enum=Now;Beginning;Time
type StartFrom string

// Where a subscription can begin.
const (
	StartFromNow       StartFrom = "Now"
	StartFromBeginning StartFrom = "Beginning"
	StartFromTime      StartFrom = "Time"
)

// Node is one step of a pipeline.
type Node struct {
	// id is unique within the pipeline: a letter, then letters, digits, _ or -.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_-]*$`
	ID string `json:"id,omitempty"`
	// type of the node, such as http-request.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9-]*$`
	Type string `json:"type,omitempty"`
	// config of the node: an object whose fields its type defines, at most 64Ki of JSON.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Config *apiextensionsv1.JSON `json:"config,omitempty"`
	// onError says what a failure that is final does: abort ends the execution, continue goes on as if the step had
	// succeeded. An edge with branch error is the third choice.
	// +optional
	// +default="abort"
	OnError OnError `json:"onError,omitempty"`
	// timeout bounds this step instead of the pipeline's stepTimeout, from 1ms to 1h.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('1h')",messageExpression="'found ' + self + '; allowed: from 1ms to 1h'"
	Timeout Duration `json:"timeout,omitempty"`
	// classify says which failures of this node are retried, dead-lettered or cancelled, where the node type's own
	// choice does not fit. The first rule that matches counts.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Classify []ClassRule `json:"classify,omitempty"`
}

// ClassRule gives a class to failures.
// +kubebuilder:validation:XValidation:rule="has(self.httpStatus) || has(self.code)",message="found neither httpStatus nor code; allowed: at least one of them"
type ClassRule struct {
	// httpStatus is a status such as "404", or a hundred such as 5xx.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=3
	// +kubebuilder:validation:Pattern=`^[1-5]([0-9][0-9]|xx)$`
	HTTPStatus string `json:"httpStatus,omitempty"`
	// code is a failure code, such as timeout.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9_]*$`
	Code string `json:"code,omitempty"`
	// as is the class: retry, dead_letter or cancel.
	// +required
	As FailureClass `json:"as,omitempty"`
}

// FailureClass is what becomes of a failed attempt.
// +kubebuilder:validation:Enum=retry;dead_letter;cancel
type FailureClass string

// OnError says what a final failure of a node does.
// +kubebuilder:validation:Enum=abort;continue
type OnError string

// The choices of OnError.
const (
	OnErrorAbort    OnError = "abort"
	OnErrorContinue OnError = "continue"
)

// Edge leads from a node to the next.
type Edge struct {
	// from is the id of the node where the edge begins.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	From string `json:"from,omitempty"`
	// to is the id of the node where it ends.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	To string `json:"to,omitempty"`
	// branch is the outcome on which the edge is taken: success (also when it is left out), error for a failure that
	// is final, or a branch of the node's type, such as true.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_-]*$`
	Branch string `json:"branch,omitempty"`
}

// Retry is how often and when a failed execution is tried again.
type Retry struct {
	// attempts is how often an execution is tried in all.
	// +optional
	// +default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Attempts int32 `json:"attempts,omitempty"`
	// backOff is the wait between attempts.
	// +optional
	// +default={}
	BackOff BackOff `json:"backOff,omitzero"`
}

// HTTPPolicy is what http-request nodes may reach.
type HTTPPolicy struct {
	// allowedCidrs are loopback, private or link-local ranges that may be reached all the same. Public addresses
	// always may.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	AllowedCIDRs []CIDR `json:"allowedCidrs,omitempty"`
	// maxResponseBytes bounds the body of a response, from 1Ki to 64Mi. A larger one fails the step.
	// +optional
	// +default="1Mi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isInteger() && quantity(string(self)).compareTo(quantity('1Ki')) >= 0 && quantity(string(self)).compareTo(quantity('64Mi')) <= 0",messageExpression="'found ' + string(self) + '; allowed: from 1Ki to 64Mi'"
	MaxResponseBytes *resource.Quantity `json:"maxResponseBytes,omitempty"`
}

// CIDR is a range of addresses, such as 10.1.0.0/16 or fd00::/8.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=43
// +kubebuilder:validation:XValidation:rule="isCIDR(self)",messageExpression="'found ' + self + '; allowed: a range of addresses, such as 10.1.0.0/16 or fd00::/8'"
type CIDR string

// PipelineStatus is what the operator found. It changes when its meaning does; live counters are metrics.
type PipelineStatus struct {
	// conditions are Ready, Reconciling and Stalled, as kstatus reads them, and what they are made of. The first is
	// there from the beginning, so that a resource which the operator has not seen is not taken for ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation that the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// replicas is how many workers run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`
	// selector finds their pods, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector,omitempty"`
	// revision identifies the graph that new executions run.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision,omitempty"`
	// key is what the pipeline is called in the ledger: the relay's instance, namespace and name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
	// consumer is the name of the durable consumer in the relay's stream.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Consumer string `json:"consumer,omitempty"`
}

package conditions

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relayops/relayops/internal/resolve"
)

// Observed is what the operator found of one resource.
type Observed struct {
	// Generation of the resource that all of this is about.
	Generation int64
	// Deleting: the resource is being deleted, and a finalizer keeps it.
	Deleting bool
	// Suspended is spec.suspend, and Replicas spec.replicas.
	Suspended bool
	Replicas  int32
	// Faults are mistakes in the resource itself.
	Faults []resolve.Fault
	// Relay is what became of a Pipeline's relayRef. It is not used for an OutboxRelay.
	Relay RelayReference
	// Child is the first child that could not be applied.
	Child *ChildProblem
	// Deployment is the live one; nil: there is none.
	Deployment *appsv1.Deployment
	// Pods are those of the Deployment that are not being deleted, or nil where nothing was looked up.
	Pods []corev1.Pod
	// Daemon is what a relay or worker told of itself.
	Daemon Daemon
}

// RelayReference is what a Pipeline's relayRef leads to.
type RelayReference struct {
	// Name of the OutboxRelay.
	Name string
	// State of it.
	State RelayState
}

// RelayState is what a Pipeline needs to know of its OutboxRelay.
type RelayState int

// States of a Pipeline's OutboxRelay.
const (
	// RelayFound: it is there, and nothing is wrong with it.
	RelayFound RelayState = iota
	// RelayMissing: there is none of that name.
	RelayMissing
	// RelayInvalid: it is there, and its mistakes keep its pipelines from being resolved.
	RelayInvalid
)

// ChildProblem is a child that could not be applied.
type ChildProblem struct {
	// Object says which: kind and name, such as "Deployment orders-relay".
	Object string
	// Kind of the problem.
	Kind ChildProblemKind
	// Message is who controls it, or what the API server said.
	Message string
}

// ChildProblemKind tells apart why a child could not be applied.
type ChildProblemKind int

// Kinds of problems with children.
const (
	// ChildOwnedByOther: another object controls it, or nobody does and the operator did not make it. It is left alone.
	ChildOwnedByOther ChildProblemKind = iota
	// ChildInvalid: the API server finds the object invalid (422, 400), which a change of the resource has to repair.
	ChildInvalid
	// ChildRefused: anything else, such as a quota, an admission webhook or a missing right. It is tried again.
	ChildRefused
)

// Daemon is what a relay or worker told of itself at its status endpoint.
type Daemon struct {
	// Answered: it told something. A single call that failed is not worth a change: pass on the last answer for a
	// minute.
	Answered bool
	// Problem says, if it did not answer, why not.
	Problem string
	// State, Reason and Message are as its status has them.
	State, Reason, Message string
}

// Event is what is recorded of a change.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is that of the condition Ready.
	Reason string
	// Message is for a person.
	Message string
}

// Result is what the status becomes.
type Result struct {
	// Conditions replace those of before.
	Conditions []metav1.Condition
	// Event is nil where Ready did not change.
	Event *Event
}

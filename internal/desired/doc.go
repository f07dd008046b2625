// Package desired builds the Kubernetes objects that an OutboxRelay or a Pipeline stands for. It is pure: the same
// input gives the same bytes, and it holds no client.
//
//	OutboxRelay ─► runspec.Relay ──┐
//	                               ├─► ServiceAccount, ConfigMap, Service, PodDisruptionBudget,
//	Pipeline ────► runspec.Worker ─┘   NetworkPolicy?, PodMonitor?, Deployment
//
// The list is in the order in which it is applied: what the pods need comes before the Deployment. Every object has its
// kind, its namespace, the labels of internal/naming and a controller reference to its resource. An object that is not
// in the list (a PodMonitor once monitors are switched off) is to be pruned. A status in the objects is the zero value
// of its type and not desired: whoever applies them leaves it out.
//
// While a resource with deletionPolicy Delete is being deleted, nothing of the list is desired but the Job of
// [RelayCleanup] or [WorkerCleanup]. The Job has no owner reference: a foreground deletion, which Argo CD uses, would
// delete it with its owner still there. It carries its specification with it, so that it needs no other child, and
// removes itself some minutes after its end.
package desired

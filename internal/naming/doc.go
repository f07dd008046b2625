// Package naming holds the names, labels and annotations that the operator gives to Kubernetes objects. They are part
// of what an upgrade must not change: a selector is immutable, and an object of another name would be another object.
//
//	OutboxRelay N ──► N-relay    Deployment, ServiceAccount, ConfigMap, Service, PodDisruptionBudget, …
//	              └─► N-relay-cleanup    Job, where deletionPolicy is Delete
//	Pipeline N ─────► N-worker   likewise
//	              └─► N-worker-cleanup
//
// All children of one resource share one name, which is good for every kind (a DNS-1035 label of at most 63
// characters). Where N does not allow it (a dot, a digit in front, a long name), the name is a readable part of N, the
// role, and 8 hexadecimal digits of a hash of N: no name that is made without a hash ends like that, and two different
// ones of the same namespace are the same only where 32 bits of SHA-256 are.
package naming

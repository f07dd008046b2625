// Package manifest reads files of custom resources, and does to them what the Kubernetes API server would.
//
//	file ─► documents ─► strict decode ─► defaults ─► schema ─► list keys, CEL ─► typed object
//	             │             │                         │             │
//	             └─────────────┴─── every mistake is a Problem ────────┘
//
// The definitions are those of config/crd, and the code that applies them is the API server's own
// (k8s.io/apiextensions-apiserver), so that what passes here passes there. As there, rules over several fields are
// evaluated once the fields have the right types and are within their bounds.
//
// Documents of other API groups are skipped with a note: a directory may hold the Secrets and the Deployments beside.
package manifest

// Package v1alpha1 holds the custom resources of RelayOps, group relayops.io, version v1alpha1.
//
// An [OutboxRelay] says which outbox is published to which stream; a [Pipeline] says what is done with the events of
// one trigger. Defaults and bounds are in the schema (config/crd/bases, generated from the markers here), rules over
// several fields in CEL. What neither can say (cycles, node configurations, timing against the relay) is checked by
// internal/resolve, for relayops lint, relayops dev and the admission webhook alike.
//
// +kubebuilder:object:generate=true
// +groupName=relayops.io
package v1alpha1

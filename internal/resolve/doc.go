// Package resolve turns custom resources into run specifications. It is pure: the same resources give the same
// specifications, for the operator, for relayops dev and for relayops lint, and it holds no client.
//
//	OutboxRelay ───────────► Relay ──► runspec.Relay
//	      │
//	      └──┐
//	Pipeline ┴─ Check ─────► Worker ─► runspec.Worker
//
// The resources have passed the API server or internal/manifest: every default is filled in, every field is within
// its bounds and agrees with its neighbours. [CheckRelay] and [CheckPipeline] find what neither schema nor CEL can
// say: mistakes of the graph and of node configurations, references, triggers that nothing maps to, and timing that
// does not fit the relay.
package resolve

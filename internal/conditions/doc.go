// Package conditions says what the operator found of a resource in conditions, as the Kubernetes API conventions and
// kstatus have them. It is pure: what was observed, and the conditions that stood there before, give the conditions
// that stand there now and the Event that tells of a change.
//
//	validation ──┐
//	reference ───┤
//	children ────┼──► Observed ──► OutboxRelay, Pipeline ──► Result: conditions, at most one Event
//	Deployment ──┤                        ▲
//	pods ────────┤                        │
//	daemon ──────┘          conditions of before, time
//
// Ready sums up:
//
//	         ┌── Unknown: on its way ──► Reconciling=True            kstatus InProgress
//	Ready ───┼── False: something is in the way
//	         │      ├── that passes by itself ──► Reconciling=True    InProgress
//	         │      └── that only a user can repair ──► Stalled=True  Failed
//	         └── True: Running, Suspended or ScaledToZero             Current
//
// Reconciling and Stalled are there only while they are True, and never both. Reasons are closed sets, see [Reasons];
// docs/conditions.md says of each what it means and what to do. No condition holds a number that moves by itself, and a
// condition's message is the same as long as its cause is: a steady state is never written again.
package conditions

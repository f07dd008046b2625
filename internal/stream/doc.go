// Package stream keeps the JetStream objects as the run specifications want them: one stream for a relay, one durable
// pull consumer for a pipeline.
//
// Ensuring is level-triggered: it may be called at any time and in several processes at once.
//
//	read ──► not there ───────────────────────────► create ──► Created
//	  │
//	  ├──► marked by another owner ───────────────► OwnedByOtherError
//	  │
//	  ├──► differs in a field that the broker ────► ConflictError, naming field, found, wanted
//	  │    cannot change, or, unmarked, in one
//	  │    whose change would drop messages
//	  │
//	  ├──► differs in other fields ───────────────► update ──► Updated (Adopted, if it had no mark)
//	  │
//	  └──► as wanted ─────────────────────────────► Unchanged
//
// Nothing is ever deleted or made anew. What is wanted and how it differs are pure functions (desiredStream,
// diffStream, desiredConsumer, diffConsumer); the rest is I/O.
package stream

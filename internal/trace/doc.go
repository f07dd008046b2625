// Package trace reads what RelayOps recorded: the whole story of one event, and lists of executions and of dead
// letters. It only reads, in one snapshot, and answers from whatever is left: a row of the outbox may be pruned while
// the ledger still knows the event, and the other way round.
//
//	outbox row ──► publication ──► execution ──► attempt ──► step
//	(committed)    (stream, seq)       │            │
//	                                   │            └─ back-off until the next attempt
//	                                   ├─ status tags
//	                                   ├─ emitted events
//	                                   └─ dead letter
package trace

// Package outbox reads and marks the rows of the outbox, in relayops.outbox_events or in a mapped table.
//
// A row's life, as the relay sees it:
//
//	                ┌──────────── given back: nothing was written, the claim's transaction ended ─────────┐
//	                ▼                                                                                      │
//	INSERT ──► PENDING ──► claimed: locked by a claim's transaction ──► PubAck ────────► PUBLISHED         │
//	                ▲          │    │                                                                      │
//	                │          │    └─ broker or database away, lease over, relay dead ───────────────────┘
//	                │          ▼
//	                │      failed by its own fault: attempts + 1
//	                └── back-off ──┤
//	                               └── attempts used up ──► FAILED
//
// A claim is one transaction ([Store.Claim] begins it, [Claim.Settle] marks the rows and commits): rows stay locked
// while they are published, other relays pass them by (SKIP LOCKED), and each event costs one row write. A relay that
// dies loses its connection, and with it the locks; one that stalls is cut off by the server when the lease is over
// (idle_in_transaction_session_timeout). A mark after a lost claim finds no transaction and changes nothing.
//
// Rows are found again for their mark by ctid, which cannot change under the lock, and checked by org and event id.
package outbox

// Package relay moves committed events from an outbox to a JetStream stream.
//
//	           ┌─────────────────────────── supervisor ───────────────────────────┐
//	           │  PAUSED (reason) ──back-off──► check: database, schema, broker,   │
//	           │     ▲    ▲                     stream ──ok──► trial batch ──ok──┐ │
//	           │     │    └──────── fails ───────┴───────── fails ──┘            ▼ │
//	           │     └── broker-wide or database error of a claimer ──────── RUNNING│
//	           └──────────────────────────────────────────────────────────────────┘
//	LISTEN ──┐                       RUNNING: probe the outbox once a poll interval
//	poll ────┼──► wake (coalesced) ──► claimer ─┐
//	claimer ─┘    full batch: wake another      ├─ claim (transaction, rows locked)
//	                                            ├─ publish, several in flight
//	                                            ├─ match PubAcks; verify duplicates
//	                                            └─ mark, commit; next claim while there is more
//
// A claimer's errors are told apart by classify. A broker-wide one pauses the relay and leaves the rows as they were:
// no outage burns an attempt. One of the event itself counts against the event. An unanswered publish is neither: the
// row stays PENDING and is published again under the same message id; the broker then reports a duplicate, which is
// believed only when the message at the reported sequence is this event.
//
// A batch never outlives its claim: publishing ends a margin before the claim's lease, which the database enforces.
package relay

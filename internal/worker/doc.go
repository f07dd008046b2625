// Package worker runs one pipeline's executions: it pulls messages and due executions, claims them in the ledger, lets
// the engine run them, and settles both.
//
// # A message's way
//
//	pulled ──► decoded ──► ours? ──► claimed ──► attempt runs ──► its end is recorded ──► settled
//	              │          │          │                            SUCCEEDED, RETRY ───► ack
//	              │          │          │                            CANCELLED, handed back► ack
//	              │          │          │                            DEAD_LETTERED ──────► term
//	              │          │          │                            lease lost ─────────► nothing: it is another's
//	              │          │          ├─ over, or waiting in the ledger ──────────────► ack
//	              │          │          ├─ leased by another worker ────────────────────► nak, later
//	              │          │          ├─ another payload: dead letter payload_conflict ► term
//	              │          │          └─ database away ───────────────────────────────► nak, later
//	              │          └─ not subscribed, another pipeline's reprocess ────────────► ack, without a row
//	              └─ undecodable: dead letter schema_invalid ────────────────────────────► term
//
// Everything is recorded before the message is settled. What is recorded and not settled (a crash in between) is
// delivered again, found to be over, and acknowledged. What is neither (a crash before the claim, deliveries used up)
// is found by the sweep, which compares the stream with the ledger up to where the broker will deliver nothing more.
//
// # Slots
//
// A worker has Concurrency slots. A message is asked for only with a slot in hand, and so is a due execution: nothing
// waits in this process. While there are due executions in plenty the slots are divided between both (see divide), so
// that neither a flood of retries delays new events nor the reverse.
//
// # Outages
//
// While the database is away nothing is pulled; attempts in hand go on, and their ends wait for it. Their leases may
// run out meanwhile, so no worker takes over a lease before it has had the database itself for a third of a lease's
// length: the holder comes first, and the outage costs nobody an attempt. While the broker is away due executions run
// on. A publish node that cannot reach it ends its attempt without counting it.
//
// A process that is killed during an outage has its attempt counted, as at any other crash.
package worker

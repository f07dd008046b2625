// Package schema holds RelayOps' tables as embedded migrations, brings a database up to them, and checks that an
// outbox table of the application's own can serve as one.
//
//	                 ┌────────────────────────── one transaction for each migration ─────────────────────────┐
//	Migrate ──► lock ─► recorded? ── yes, same checksum ──► next
//	  (advisory,  │        ├──────── yes, other checksum ─► ChecksumError
//	  for the     │        └──────── no ──► run it ─► record it ─► commit ─► next
//	  transaction)└─ recorded, but not known to this binary ─► NewerError
//
// The lock is one of the transaction (pg_advisory_xact_lock), so that migrations work through PgBouncer in transaction
// mode and any number of processes may start at once: one migrates, the others wait and find nothing left to do.
package schema

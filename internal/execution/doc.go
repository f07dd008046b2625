// Package execution is the ledger: one row for one (org, pipeline, event id, operation version), and under which lease
// which attempt of it runs. Everything that RelayOps itself stores of an execution goes through it, in one transaction
// with the state that it belongs to.
//
//	                       claim (attempt+1, token+1)
//	   (no row) ──────────────────────────┐
//	                                      ▼      Succeed
//	┌──────┐  claim, when due       ┌─────────┐ ──────────► SUCCEEDED
//	│RETRY │ ─────────────────────► │ RUNNING │ DeadLetter
//	│      │ ◄───────────────────── │         │ ──────────► DEAD_LETTERED (and a row of dead_letters)
//	└──────┘  Retry                 └─────────┘ Cancel
//	   ▲      HandBack (attempt-1)   │  ▲  │    ──────────► CANCELLED
//	   │                             └──┘  │
//	 Recover (the sweep)      claim, when  └─ claim after the deadline ─► CANCELLED
//	                          the lease ran out
//
// # Leases
//
// A claim raises the fencing token. Whatever an attempt records names the token of its claim, and is refused
// ([ErrLeaseLost]) when the row has another one or is no longer RUNNING. Leases are compared by database time only: the
// clocks of workers do not matter.
//
// A claim of a row whose attempts are used up (workers that crashed in it) takes the lease without counting an attempt
// and says [AttemptsExhausted]: the claimer writes the dead letter, and runs nothing.
//
// # An answer that does not come
//
// A statement whose answer is lost may have been committed. It is resolved by asking again, never by guessing
// (see settle): a claim is repeated under the same owner name, which finds its own row; the end of an attempt is
// repeated under its token, and the row's state says whether it was there already; steps are looked for under the row's
// lock before they are written again. Meanwhile the caller waits, however long the database is away: an outage ends no
// attempt. Only a statement that surely did nothing is given back at once, as [ErrUnavailable], where the caller can do
// something better than wait.
package execution

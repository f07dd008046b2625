// Package outbox writes events in the application's own transaction: both the business data and the event commit, or
// neither. A relay publishes them afterwards.
//
//	tx, _ := pool.Begin(ctx)
//	// … the order …
//	confirmed, err := event.New("acme", "OrderConfirmed", order)
//	err = outbox.Write(ctx, tx, confirmed)
//	err = tx.Commit(ctx)
//	pinger.Ping() // after the commit, never inside the transaction
//
// [Write] takes a pgx transaction, [WriteSQL] one of database/sql. A [Writer] does the same for a table of the
// application's own ([Table]).
//
// # The same event twice
//
// An event's key is its organisation and its id. Writing an event again with the same payload does nothing, so a
// retried call is harmless; with another payload it is a [ConflictError] (errors.Is [ErrPayloadConflict]). Two
// transactions that race for one key are told apart the same way: the second waits until the first has ended.
//
// # The wake-up
//
// A relay polls, and a ping only makes it poll at once. [Pinger] and [Ping] send it on a connection outside the
// transaction, because a NOTIFY inside one takes a lock on the whole database while it commits.
package outbox

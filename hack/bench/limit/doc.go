// Package limit holds the hand-written loops that bound what a relay can do: the least code that claims rows of the
// outbox, publishes them, and records stream and sequence in them. They have no back-off, no retry, no verification,
// no drain; an error ends them.
//
//	Transaction   BEGIN, SELECT … FOR UPDATE SKIP LOCKED, publish, UPDATE, COMMIT     one write a row
//	Lease         UPDATE … (claim, committed), publish, UPDATE … (mark, committed)    two writes a row
//
// A loop runs as a process of its own, as the relay does.
package limit

// Package connect opens the two connections of a daemon, PostgreSQL and NATS, from a run specification.
//
// Both are lazy: a server that is away, or a Secret that is not mounted yet, is no error of opening; the first use
// fails, and later ones succeed once it is there. Files that hold credentials are read again for each new connection,
// so a rotated Secret is followed without a restart. [Explain] turns the errors of first use into advice.
package connect

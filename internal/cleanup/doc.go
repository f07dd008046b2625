// Package cleanup holds a deleted resource back until its cleanup Job has removed what it has in broker and database,
// where its deletionPolicy says so, and lets it go in any case after a bounded time.
//
//	deleted ──► its pods go ──► Job runs ──► succeeded ─────────────► CleanedUp ────────┐
//	                │               │                                                   ├──► finalizer removed
//	                │               ├──► failed, or a Secret is missing ──┐             │
//	                │               └──► the Job cannot be made ──────────┼► CleanupAbandoned
//	                └────────────────────────► desired.CleanupTime over ──┘
//
// An operator that is not there holds a deletion up for as long; removing the finalizer relayops.io/cleanup by hand is
// the escape, and leaves everything in broker and database as it is.
package cleanup

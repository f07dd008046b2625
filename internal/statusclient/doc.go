// Package statusclient asks relays and workers for their status, and remembers what they told.
//
//	controller ── Latest(target, epoch) ──► Poller ──► the last answer, at once
//	     ▲                                    │ every 30 s; every 15 s, or at once, while things change
//	     │                                    ▼
//	     └──── Changes: the meaning changed ── GET http://<service>.<namespace>.svc:8080/status
//	                                           Authorization: Bearer <token for that daemon alone, 60 s>
//
// Reconciling never waits for a daemon, and a daemon that answers the same as before causes none. A daemon that does
// not answer keeps its last answer for a minute: one lost call changes nothing.
package statusclient

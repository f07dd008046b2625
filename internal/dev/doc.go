// Package dev runs custom resources on one machine, with no cluster: what relayops dev does.
//
//	manifests ──load──► desired ──plan──► supervisor ──► relay, worker, worker, …   (goroutines)
//	    ▲                  ▲                                │
//	    │ fsnotify         │ mistakes: the old one stays    ▼
//	    └──────────────────┘                          PostgreSQL ◄── guard: started again when it dies
//	                                                  NATS       ◄── guard: started again when it takes no messages
//
// The supervisor is level-triggered. Each relay and each worker is a slot, which runs whatever specification was
// wanted last:
//
//	        want(spec)                 want(other spec)                 the run is over
//	empty ─────────────► running(spec) ────────────────► draining(spec) ───────────────► running(other spec)
//	                        │    ▲                          │
//	        the run failed  ▼    │ after a back-off         │ want(nothing), or the end
//	                      waiting┘                          ▼
//	                                                       gone
//
// A worker that drains hands its executions back; the ledger keeps the revision that each began with.
package dev

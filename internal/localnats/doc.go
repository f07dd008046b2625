// Package localnats runs a NATS server with JetStream inside this process: relayops dev keeps its stream there.
// It listens on loopback only and syncs every write, so that what it acknowledged survives a SIGKILL and a power cut.
//
//	         Start: lock the directory, look for room, listen, recover the store
//	stopped ─────────────────────────────────────────────────────────────────────► running ──Stop──► stopped
//	                                                                                 │  ▲
//	                                a write finds the disk full: JetStream takes no  │  │ Restart, once there is
//	                                message more and answers none, Check says why    ▼  │ room again
//	                                                                                impaired
package localnats

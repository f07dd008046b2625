// Package runspec is the contract between whoever configures a relay or a worker (the operator, relayops dev, or the
// environment) and the daemons that run them: plain documents with every default filled in, so that a daemon decides
// nothing and needs no Kubernetes client.
//
//	OutboxRelay ─┐                        ┌─► Relay  ──► relay daemon
//	             ├─► resolve (pure) ──────┤
//	Pipeline ────┘                        └─► Worker ──► worker daemon
//
// A specification holds no secret: credentials are named by file or environment variable and read by the daemon.
package runspec

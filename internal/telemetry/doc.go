// Package telemetry is what a daemon shows of itself: its log, and an HTTP endpoint with
//
//	/healthz  200 while the process lives
//	/readyz   200 when it can do its work, else 503 and the reason
//	/metrics  Prometheus metrics
//	/status   the daemon's own status, as JSON
//
// It holds no globals, so that several daemons run in one process.
package telemetry

// Package worker runs a pipeline's worker with everything around it: connections, migrations if wanted, and the HTTP
// endpoint. The program cmd/worker and relayops dev use it; it owns no signal and no global.
package worker

// Package relay runs a relay with everything around it: connections, migrations if wanted, and the HTTP endpoint. The
// program cmd/relay and relayops dev use it; it owns no signal and no global.
package relay

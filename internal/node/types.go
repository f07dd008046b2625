// Package node is the registry of node types: one package each, one entry here.
package node

import "github.com/relayops/relayops/internal/engine"

// Types are the node types that a pipeline may use.
func Types() engine.Registry {
	registry := engine.Registry{}
	return registry
}

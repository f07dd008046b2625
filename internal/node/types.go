// Package node is the registry of node types: one package each, one entry here.
package node

import (
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node/condition"
	"github.com/relayops/relayops/internal/node/emitevent"
	"github.com/relayops/relayops/internal/node/httprequest"
	"github.com/relayops/relayops/internal/node/publish"
	"github.com/relayops/relayops/internal/node/setstatus"
	"github.com/relayops/relayops/internal/node/start"
	"github.com/relayops/relayops/internal/node/switchnode"
	"github.com/relayops/relayops/internal/node/transform"
)

// Types are the node types that a pipeline may use.
func Types() engine.Registry {
	registry := engine.Registry{}
	for _, t := range []engine.Type{
		start.Type{}, httprequest.Type{}, setstatus.Type{}, emitevent.Type{},
		condition.Type{}, switchnode.Type{}, transform.Type{}, publish.Type{},
	} {
		registry[t.Name()] = t
	}
	return registry
}

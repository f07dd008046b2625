package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/execution"
)

// mostRevisions bounds the cache: retries of old revisions are rare, and each is dropped in the end.
const mostRevisions = 16

// revisions are compiled graphs. Each execution runs with the revision that it began with.
type revisions struct {
	ledger *execution.Ledger
	types  engine.Registry

	mu     sync.Mutex
	graphs map[string]*engine.Graph
	// newest is never dropped.
	newest string
}

func newRevisions(ledger *execution.Ledger, types engine.Registry, newest string, graph *engine.Graph) *revisions {
	return &revisions{
		ledger: ledger, types: types, newest: newest, graphs: map[string]*engine.Graph{newest: graph},
	}
}

// errRevisionUnusable: the revision is not recorded, or this program cannot run it.
var errRevisionUnusable = errors.New("pipeline revision unusable")

// get gives a graph. Its errors are errRevisionUnusable and execution.ErrUnavailable.
func (r *revisions) get(ctx context.Context, revision string) (*engine.Graph, error) {
	r.mu.Lock()
	graph := r.graphs[revision]
	r.mu.Unlock()
	if graph != nil {
		return graph, nil
	}
	definition, err := r.ledger.Revision(ctx, revision)
	if errors.Is(err, execution.ErrRevisionMissing) || errors.Is(err, execution.ErrRefused) {
		return nil, fmt.Errorf("%w: %w", errRevisionUnusable, err)
	}
	if err != nil {
		return nil, err
	}
	if graph, err = engine.Compile(definition, r.types); err != nil {
		return nil, fmt.Errorf("%w: revision %s: %w", errRevisionUnusable, revision, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.graphs {
		if len(r.graphs) < mostRevisions {
			break
		}
		if name != r.newest {
			delete(r.graphs, name)
		}
	}
	r.graphs[revision] = graph
	return graph, nil
}

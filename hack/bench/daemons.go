package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/relayops/relayops/hack/bench/load"
	"github.com/relayops/relayops/hack/bench/rig"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/runspec"
)

// seconds is a duration of a specification.
func seconds(n float64) runspec.Duration { return runspec.Duration(n * float64(time.Second)) }

// startRelay runs the relay as an OutboxRelay with default values would, and returns when it is ready.
func (b *bench) startRelay(ctx context.Context, stream runspec.Stream) (*rig.Process, error) {
	return b.startRelayOf(ctx, rig.Current, stream)
}

func (b *bench) startRelayOf(ctx context.Context, build rig.Build, stream runspec.Stream) (*rig.Process, error) {
	databaseURL, err := b.rig.DatabaseURL(rig.RoleRelay)
	if err != nil {
		return nil, err
	}
	return b.rig.StartRelay(ctx, build, runspec.Relay{
		Key:          "bench/bench/relay",
		Database:     runspec.Database{URL: databaseURL, MaxConnections: 8},
		NATS:         runspec.NATS{URL: b.rig.NATSURL()},
		Stream:       stream,
		PollInterval: runspec.Duration(b.plan.pollInterval),
		BatchSize:    b.plan.batch, Claimers: b.plan.claimers,
		ClaimLease: seconds(30), PublishTimeout: seconds(5),
		MaxAttempts:           10,
		BackOff:               runspec.BackOff{Initial: seconds(1), Max: seconds(300), Multiplier: 2, Jitter: 0.2},
		MaxInlinePayloadBytes: 256 << 10,
	})
}

// startWorker runs one worker of a pipeline, and returns when it is ready.
func (b *bench) startWorker(ctx context.Context, stream runspec.Stream, pipeline engine.Definition,
) (*rig.Process, error) {
	return b.startWorkerOf(ctx, rig.Current, stream, pipeline)
}

func (b *bench) startWorkerOf(ctx context.Context, build rig.Build, stream runspec.Stream, pipeline engine.Definition,
) (*rig.Process, error) {
	databaseURL, err := b.rig.DatabaseURL(rig.RoleWorker)
	if err != nil {
		return nil, err
	}
	return b.rig.StartWorker(ctx, build, runspec.Worker{
		PipelineKey: "bench/bench/orders",
		Database:    runspec.Database{URL: databaseURL, MaxConnections: int32(min(b.plan.concurrency+4, 100))},
		NATS:        runspec.NATS{URL: b.rig.NATSURL()},
		Stream:      stream,
		Consumer:    "bench-orders",
		Subscription: runspec.Subscription{
			Trigger: "order.post", EventTypes: []string{load.EventType}, StartFrom: "Beginning",
		},
		Definition: pipeline, Revision: fmt.Sprintf("bench-%d-nodes", len(pipeline.Nodes)),
		Concurrency: b.plan.concurrency, Replicas: 1,
		MaxAttempts: 5, MaxDeliver: 20,
		BackOff:       runspec.BackOff{Initial: seconds(1), Max: seconds(300), Multiplier: 2, Jitter: 0.2},
		LeaseDuration: seconds(30), StepTimeout: seconds(30), GracePeriod: seconds(40),
		DuePollInterval: seconds(1), SweepInterval: seconds(30),
		HTTP: runspec.HTTPPolicy{MaxResponseBytes: 1 << 20},
	})
}

// pipelineOf gives a pipeline of 1, 3 or more nodes: start alone; with two or more, start and a chain of transforms
// that ends in a status. Nothing of it leaves the worker, so that what is measured is RelayOps' own work.
func pipelineOf(nodes int) engine.Definition {
	definition := engine.Definition{Nodes: []engine.Node{{ID: "start", Type: "start"}}}
	for n := 1; n < nodes; n++ {
		node := engine.Node{
			ID: fmt.Sprintf("step%d", n), Type: "transform",
			Config: json.RawMessage(`{"output": {"order": "{{payload.orderId}}", "amount": "{{payload.amount}}"}}`),
		}
		if n == nodes-1 {
			node.Type = "set-status"
			node.Config = json.RawMessage(`{"statusTag": "success", "phase": "order.post", "name": "done"}`)
		}
		definition.Nodes = append(definition.Nodes, node)
		definition.Edges = append(definition.Edges, engine.Edge{From: definition.Nodes[n-1].ID, To: node.ID})
	}
	return definition
}

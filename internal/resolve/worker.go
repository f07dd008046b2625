package resolve

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/jsontime"
	"github.com/relayops/relayops/internal/runspec"
)

const (
	// spareDeliveries is how far the consumer's hard stop lies above the attempts: deliveries that begin no attempt,
	// such as hand-backs at a shutdown, and crashes before a claim.
	spareDeliveries = 10
	// leaseDuration: a worker that is gone is replaced after it; renewed at a third of it.
	leaseDuration = 30 * time.Second
	// graceMargin is what a worker needs beyond its longest step to hand the execution back.
	graceMargin = 5 * time.Second

	duePollInterval = time.Second
	sweepInterval   = 30 * time.Second
)

// Worker is the specification of a pipeline's daemon. Its error is that of a resource that did not pass the schema.
func Worker(pipeline *v1alpha1.Pipeline, relay *v1alpha1.OutboxRelay, mounts Mounts) (runspec.Worker, error) {
	spec, read := pipeline.Spec, reading{}
	definition, revision, err := definitionOf(pipeline)
	if err != nil {
		return runspec.Worker{}, err
	}
	key := PipelineKey(pipeline, relay)
	resolved := runspec.Worker{
		PipelineKey:     key,
		Database:        mounts.database(relay.Spec.Database),
		NATS:            mounts.nats(relay.Spec.NATS),
		Table:           table(relay.Spec.Table),
		Stream:          stream(relay.Spec, &read),
		Server:          runspec.Server{Address: mounts.ServerAddress},
		Consumer:        Consumer(key),
		Subscription:    subscription(spec, relay.Spec),
		Definition:      definition,
		Revision:        revision,
		Concurrency:     int(spec.Concurrency),
		Replicas:        max(1, int(value(spec.Replicas))),
		MaxAttempts:     int(spec.Retry.Attempts),
		BackOff:         backOff("retry.backOff", spec.Retry.BackOff, &read),
		MaxDeliver:      int(spec.Retry.Attempts) + spareDeliveries,
		LeaseDuration:   runspec.Duration(leaseDuration),
		StepTimeout:     read.duration("stepTimeout", spec.StepTimeout),
		PipelineTimeout: read.duration("pipelineTimeout", spec.PipelineTimeout),
		Deadline:        read.duration("deadline", spec.Deadline),
		GracePeriod:     runspec.Duration(longestStep(spec) + graceMargin),
		DuePollInterval: runspec.Duration(duePollInterval),
		SweepInterval:   runspec.Duration(sweepInterval),
		HTTP:            httpPolicy(spec.HTTP, &read),
		Suspended:       value(spec.Suspend),
	}
	if err := read.err(); err != nil {
		return runspec.Worker{}, fmt.Errorf("pipeline %s/%s: %w", pipeline.Namespace, pipeline.Name, err)
	}
	return resolved, nil
}

// PipelineKey of a Pipeline: it begins with its relay's instance.
func PipelineKey(pipeline *v1alpha1.Pipeline, relay *v1alpha1.OutboxRelay) string {
	return Key(relay.Spec.Instance, pipeline.Namespace, pipeline.Name)
}

func subscription(spec v1alpha1.PipelineSpec, relay v1alpha1.OutboxRelaySpec) runspec.Subscription {
	subscription := runspec.Subscription{
		Trigger:    string(spec.Trigger),
		EventTypes: EventTypes(spec.Trigger, relay.Triggers),
		StartFrom:  string(spec.StartFrom),
	}
	for _, org := range spec.Orgs {
		subscription.Orgs = append(subscription.Orgs, string(org))
	}
	if spec.StartTime != nil {
		start := spec.StartTime.UTC()
		subscription.StartTime = &start
	}
	return subscription
}

func httpPolicy(spec v1alpha1.HTTPPolicy, read *reading) runspec.HTTPPolicy {
	policy := runspec.HTTPPolicy{MaxResponseBytes: read.bytes("http.maxResponseBytes", spec.MaxResponseBytes)}
	for _, cidr := range spec.AllowedCIDRs {
		policy.AllowedCIDRs = append(policy.AllowedCIDRs, string(cidr))
	}
	return policy
}

// longestStep is the longest timeout that any step can have.
func longestStep(spec v1alpha1.PipelineSpec) time.Duration {
	longest := std(spec.StepTimeout)
	for _, node := range spec.Nodes {
		longest = max(longest, std(node.Timeout))
	}
	return longest
}

// Definition is a Pipeline's graph as the engine has it.
func Definition(pipeline *v1alpha1.Pipeline) (engine.Definition, error) {
	definition, _, err := definitionOf(pipeline)
	return definition, err
}

func definitionOf(pipeline *v1alpha1.Pipeline) (engine.Definition, string, error) {
	definition := engine.Definition{
		Nodes: make([]engine.Node, len(pipeline.Spec.Nodes)), Edges: make([]engine.Edge, len(pipeline.Spec.Edges)),
	}
	for i, node := range pipeline.Spec.Nodes {
		converted := engine.Node{
			ID: node.ID, Type: node.Type, OnError: string(node.OnError), Timeout: jsontime.Duration(std(node.Timeout)),
		}
		if node.Config != nil && len(node.Config.Raw) > 0 {
			converted.Config = json.RawMessage(node.Config.Raw)
		}
		for _, rule := range node.Classify {
			converted.Classify = append(converted.Classify, engine.ClassRule{
				HTTPStatus: rule.HTTPStatus, Code: engine.Code(rule.Code), As: engine.Class(rule.As),
			})
		}
		definition.Nodes[i] = converted
	}
	for i, edge := range pipeline.Spec.Edges {
		definition.Edges[i] = engine.Edge{From: edge.From, To: edge.To, Branch: edge.Branch}
	}
	revision, err := Revision(definition)
	if err != nil {
		return engine.Definition{}, "", fmt.Errorf("pipeline %s/%s: %w", pipeline.Namespace, pipeline.Name, err)
	}
	return definition, revision, nil
}

package resolve_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/manifest"
	"github.com/relayops/relayops/internal/resolve"
	"github.com/relayops/relayops/internal/runspec"
)

const relayText = `
apiVersion: relayops.io/v1alpha1
kind: OutboxRelay
metadata: {name: %s}
spec:
  database: {urlSecretRef: {name: %s, key: url}}
  nats: {url: "nats://nats:4222"}
%s`

const pipelineText = `
apiVersion: relayops.io/v1alpha1
kind: Pipeline
metadata: {name: order-post}
spec:
  relayRef: {name: orders}
  trigger: %s
  nodes: [{id: start, type: start}]
%s`

func relayWith(fields ...string) string {
	return fmt.Sprintf(relayText, "orders", "db", strings.Join(append(fields, ""), "\n"))
}

func pipelineWith(trigger string, fields ...string) string {
	return fmt.Sprintf(pipelineText, trigger, strings.Join(fields, "\n"))
}

var checks = []struct{ name, text, want string }{
	{"nothing wrong", relayWith() + "---" + pipelineWith("order.post", "  orgs: [acme]"), ""},
	{"no relay", pipelineWith("order.post", "  orgs: [acme]"),
		`spec.relayRef.name: found "orders", which does not exist; allowed: an OutboxRelay of namespace default; there is none`},
	{"a relay of another namespace",
		strings.Replace(relayWith(), "name: orders", "namespace: shop, name: orders", 1) + "---" +
			pipelineWith("order.post", "  orgs: [acme]"),
		`spec.relayRef.name: found "orders", which does not exist; allowed: an OutboxRelay of namespace default; there is none`},
	{"all organisations, not permitted", relayWith() + "---" + pipelineWith("order.post"),
		"spec.orgs: found nothing, which means all organisations; allowed: names of organisations, unless OutboxRelay " +
			"orders has allowAllOrgs: true"},
	{"all organisations, permitted", relayWith("  allowAllOrgs: true") + "---" + pipelineWith("order.post"), ""},
	{"an organisation of too many bytes", relayWith() + "---" +
		pipelineWith("order.post", "  orgs: ["+strings.Repeat("ü", 65)+"]"),
		"spec.orgs[0]: found 130 bytes; allowed: at most 128 bytes"},
	{"a trigger that nothing maps to", relayWith() + "---" + pipelineWith("order.pots", "  orgs: [acme]"),
		`spec.trigger: found "order.pots", which no event type of OutboxRelay orders has; allowed: order.post, event.T ` +
			`for an event type T that is not mapped`},
	{"an event type that is mapped elsewhere", relayWith() + "---" + pipelineWith("event.OrderConfirmed", "  orgs: [acme]"),
		`spec.trigger: found "event.OrderConfirmed", while OutboxRelay orders maps OrderConfirmed to "order.post"; ` +
			`allowed: order.post, event.T for an event type T that is not mapped`},
	{"an event type that is not mapped", relayWith() + "---" + pipelineWith("event.invoice.paid", "  orgs: [acme]"), ""},
	{"retries that outlast the message", relayWith("  stream: {maxAge: 1h}") + "---" +
		pipelineWith("order.post", "  orgs: [acme]", "  retry: {attempts: 5, backOff: {initial: 1h, max: 1h}}"),
		"spec.retry: found attempts and back-off that may take 5h3m0s; allowed: at most 1h, the stream.maxAge of " +
			"OutboxRelay orders: fewer attempts, a shorter backOff.max or pipelineTimeout"},
	{"a column for two", relayWith("  table: {name: t, columns: {event_id: x, org_id: x}}"),
		`spec.table.columns.org_id: found "x", which stands for event_id already; allowed: a column of its own, or "" for none`},
	{"two relays of one outbox", relayWith() + "---" + fmt.Sprintf(relayText, "again", "db", "  stream: {name: B, subjectPrefix: b}"),
		"spec.table: found the outbox relayops.outbox_events, which OutboxRelay default/orders publishes too; allowed: " +
			"one OutboxRelay for one outbox"},
	{"two relays of one stream", relayWith() + "---" + fmt.Sprintf(relayText, "again", "other", ""),
		`spec.stream.name: found "RELAYOPS", the stream of OutboxRelay default/orders too; allowed: a stream of its own ` +
			`for OutboxRelay again`},
	{"two relays of the same subjects", relayWith() + "---" + fmt.Sprintf(relayText, "again", "other", "  stream: {name: B}"),
		`spec.stream.subjectPrefix: found "events" beside "events" of OutboxRelay default/orders; allowed: subjects of ` +
			`its own for OutboxRelay again`},
	{"two relays that keep apart", relayWith() + "---" +
		fmt.Sprintf(relayText, "again", "other", "  stream: {name: B, subjectPrefix: b}"), ""},
	{"a rule over all nodes, said of each", relayWith() + "---" + strings.Replace(
		pipelineWith("order.post", "  orgs: [acme]", "  edges: [{from: start, to: b}]"),
		"{id: start, type: start}", "{id: start, type: start}, {id: b, type: transform, config: {output: {}}, timeout: 20m}", 1),
		"spec.nodes[1].timeout: found 20m beside a pipelineTimeout of 15m; allowed: at most pipelineTimeout"},
}

func TestChecks(t *testing.T) {
	for _, one := range checks {
		t.Run(one.name, func(t *testing.T) {
			if got := load(t, clusterMounts, one.text); got != one.want {
				t.Errorf("found\n%s\nwant\n%s", got, one.want)
			}
		})
	}
}

// What has a problem of the schema alone has no specification either.
func TestFaultyResourcesAreNotResolved(t *testing.T) {
	set, problems := manifest.Read("test.yaml", strings.NewReader(
		relayWith("  batchSize: 0")+"---"+pipelineWith("order.post", "  orgs: [acme]", "  concurrency: 0")))
	relays, workers, more := resolve.Set(set, clusterMounts)
	if len(problems) != 2 || len(more) != 0 || len(relays) != 0 || len(workers) != 0 {
		t.Errorf("found %v, %v, %d relays, %d workers; want two problems and nothing resolved",
			problems, more, len(relays), len(workers))
	}
}

// A graph that is far too large is one mistake, whoever of the two checks finds it, and found at once.
func TestTooManyNodes(t *testing.T) {
	nodes := "{id: start, type: start}"
	for i := range 499 {
		nodes += fmt.Sprintf(", {id: n%d, type: no-such-type}", i)
	}
	began := time.Now()
	text := relayWith() + "---" + strings.Replace(pipelineWith("order.post", "  orgs: [acme]"), "{id: start, type: start}", nodes, 1)
	if got, want := load(t, clusterMounts, text), "spec.nodes: found 500 items; allowed: a list of 1 to 256 items"; got != want {
		t.Errorf("found\n%.1000s\nwant\n%s", got, want)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
}

// Two relays whose Secrets differ share the one database of a machine all the same.
func TestOneDatabaseForAll(t *testing.T) {
	mounts := resolve.Mounts{Database: &runspec.Database{URL: "postgres://"}, NATS: &runspec.NATS{URL: "nats://"}}
	text := relayWith() + "---" + strings.Replace(
		fmt.Sprintf(relayText, "again", "other", "  stream: {name: B, subjectPrefix: b}"), "nats:4222", "elsewhere:4222", 1)
	want := "spec.table: found the outbox relayops.outbox_events, which OutboxRelay default/orders publishes too; " +
		"allowed: one OutboxRelay for one outbox"
	if got := load(t, mounts, text); got != want {
		t.Errorf("found\n%s\nwant\n%s", got, want)
	}
}

func TestRetryHorizon(t *testing.T) {
	jitter := int32(50)
	spec := v1alpha1.PipelineSpec{
		PipelineTimeout: "1m",
		Retry: v1alpha1.Retry{Attempts: 4, BackOff: v1alpha1.BackOff{
			Initial: "10s", Max: "25s", Multiplier: 2, JitterPercent: &jitter,
		}},
	}
	// Waits of 10s, 20s and 25s, each up to half as long again, beside the minute of executing.
	if got, want := resolve.RetryHorizon(spec), time.Minute+82500*time.Millisecond; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
	spec.Retry.Attempts = 1
	if got := resolve.RetryHorizon(spec); got != time.Minute {
		t.Errorf("one attempt: found %s, want 1m", got)
	}
}

// A set that went through no file, as the operator has it, is checked by the same code.
func TestCheckPipelineWithoutFiles(t *testing.T) {
	pipeline := &v1alpha1.Pipeline{}
	pipeline.Name, pipeline.Namespace = "a", "b"
	pipeline.Spec.Nodes = []v1alpha1.Node{{ID: "start", Type: "begin"}}
	faults := resolve.CheckPipeline(pipeline, nil)
	if len(faults) == 0 || faults[0].Field != "spec.nodes[0].type" || !strings.Contains(faults[0].Found, "begin") {
		t.Errorf("found %v; want a fault of spec.nodes[0].type first", faults)
	}
}

package manifest

import (
	"context"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/relayops/relayops/config/crd"
)

const twoEdges = `[{from: start, to: start}, {from: start, to: nowhere}]`

// ruleCases has each CEL rule broken, by itself where that is possible. rule is a part of the rule's text.
var ruleCases = []struct {
	rule, base, path, value string
	want                    string
}{
	// OutboxRelay
	{"duration('50ms')", minimalRelay, "spec/pollInterval", "49ms",
		"spec.pollInterval: found 49ms; allowed: from 50ms to 10m"},
	{"duration('2s') && duration(self) <= duration('10m')", minimalRelay, "spec/claimLease", "11m",
		"spec.stream.duplicateWindow: found 10m; allowed: longer than claimLease + publishTimeout + pollInterval, " +
			"11m + 5s + 2s\nspec.claimLease: found 11m; allowed: from 2s to 10m"},
	{"duration('100ms') && duration(self) <= duration('5m')", minimalRelay, "spec/publishTimeout", "99ms",
		"spec.publishTimeout: found 99ms; allowed: from 100ms to 5m"},
	{"duration(self.publishTimeout) + duration('1s')", minimalRelay, "spec/publishTimeout", "29.5s",
		"spec.publishTimeout: found 29.5s beside a claimLease of 30s; allowed: at least 1s shorter than claimLease, " +
			"so that a batch never outlives its claim"},
	{"self.database.maxConnections > self.claimers", minimalRelay, "spec/claimers", "10",
		"spec.database.maxConnections: found no more connections than claimers; allowed: more than claimers, since " +
			"each holds one"},
	{"duration(self.stream.duplicateWindow) > ", minimalRelay, "spec/stream/duplicateWindow", "37s",
		"spec.stream.duplicateWindow: found 37s; allowed: longer than claimLease + publishTimeout + pollInterval, " +
			"30s + 5s + 2s"},
	{"self.maxInlinePayloadBytes)).add(65536)", minimalRelay, "spec/maxInlinePayloadBytes", "961Ki",
		"spec.stream.maxMessageBytes: found less than maxInlinePayloadBytes + 64Ki; allowed: at least that, since an " +
			"event's headers travel beside its payload"},
	{"t.matches('^[A-Za-z]", minimalRelay, "spec/triggers", `{"Order Confirmed": x}`,
		"spec.triggers: found the event type Order Confirmed; allowed: a letter, then letters, digits, dot, _ or -, " +
			"at most 128"},
	{"quantity('8Mi')", minimalRelay, "spec/maxInlinePayloadBytes", "-1",
		"spec.maxInlinePayloadBytes: found -1; allowed: from 0 to 8Mi"},
	{"quantity('1Mi')", minimalRelay, "spec/stream/maxBytes", "1k",
		"spec.stream.maxBytes: found 1k; allowed: from 1Mi to 1Pi"},
	{"quantity('64Ki')", minimalRelay, "spec/stream/maxMessageBytes", "65Mi",
		"spec.stream.maxMessageBytes: found 65Mi; allowed: from 64Ki to 64Mi"},
	{"duration('1m') && duration(self) <= duration('10000h')", minimalRelay, "spec/stream/maxAge", "10001h",
		"spec.stream.maxAge: found 10001h; allowed: from 1m to 10000h"},
	{"duration('1s') && duration(self) <= duration('24h')", minimalRelay, "spec/stream/duplicateWindow", "25h",
		"spec.stream.duplicateWindow: found 25h; allowed: from 1s to 24h"},
	{"duration(self.duplicateWindow) <= duration(self.maxAge)", minimalRelay, "spec/stream/maxAge", "9m",
		"spec.stream.duplicateWindow: found 10m beside a maxAge of 9m; allowed: at most maxAge"},
	{"has(self.listenUrlSecretRef)", minimalRelay, "spec/database",
		"{urlSecretRef: {name: a, key: b}, listenUrlSecretRef: {name: a, key: c}, disableListen: true}",
		"spec.database.disableListen: found listenUrlSecretRef beside disableListen; allowed: one of them"},
	{"has(self.userSecretRef) == has(self.passwordSecretRef)", minimalRelay, "spec/nats/userSecretRef",
		"{name: a, key: b}",
		"spec.nats.userSecretRef: found one of userSecretRef and passwordSecretRef; allowed: both or none"},
	{"[has(self.credsSecretRef)", minimalRelay, "spec/nats",
		"{url: 'nats://n:1', credsSecretRef: {name: a, key: b}, tokenSecretRef: {name: a, key: c}}",
		"spec.nats: found several kinds of credentials; allowed: one of credsSecretRef, userSecretRef with " +
			"passwordSecretRef, and tokenSecretRef"},
	{"has(self.certSecretRef) == has(self.keySecretRef)", minimalRelay, "spec/nats/tls/certSecretRef",
		"{name: a, key: b}", "spec.nats.tls.certSecretRef: found one of certSecretRef and keySecretRef; allowed: both or none"},
	{"self.all(c, c in [", minimalRelay, "spec/table", "{name: t, columns: {foo: bar}}",
		"spec.table.columns: found a key that is no column of relayops.outbox_events; allowed: position, event_id, " +
			"org_id, event_type, event_version, aggregate_type, aggregate_id, correlation_id, causation_id, payload, " +
			"payload_sha256, headers, occurred_at, created_at, status, available_at, attempts, operation_version, " +
			"last_error, published_at, stream, stream_seq"},
	{"!(c in self) || self[c] != ''", minimalRelay, "spec/table", `{name: t, columns: {event_id: ""}}`,
		"spec.table.columns: found an empty name for a required column; allowed: the table's names for event_id, " +
			"org_id, event_type, payload, occurred_at, status, available_at and attempts"},
	{"duration(self.initial) <= duration(self.max)", minimalRelay, "spec/backOff/initial", "6m",
		"spec.backOff.initial: found initial above max; allowed: initial at most max"},
	{"duration('1ms') && duration(self) <= duration('24h')", minimalRelay, "spec/backOff/max", "25h",
		"spec.backOff.max: found 25h; allowed: from 1ms to 24h"},
	{"size(self.metadata.name) <= 63", minimalRelay, "metadata/name", strings.Repeat("a", 64),
		"found a name of more than 63 characters; allowed: at most 63, so that it fits a label"},
	// podTemplate
	{"self.all(k, k.matches('^([a-z0-9]", minimalRelay, "spec/podTemplate", `{labels: {"cost centre": a}}`,
		"spec.podTemplate.labels: found a key that no label can have; allowed: up to 63 letters, digits, -, _ and ., " +
			"after a domain and / if any"},
	{"k.matches('^([a-z0-9]([-a-z0-9.]*", minimalRelay, "spec/podTemplate", `{annotations: {"/a": a}}`,
		"spec.podTemplate.annotations: found a key that no annotation can have; allowed: up to 63 letters, digits, -, _ " +
			"and ., after a domain and / if any"},
	{"[-A-Za-z0-9_.]{0,61}", minimalPipeline, "spec/podTemplate", `{nodeSelector: {"a/": a}}`,
		"spec.podTemplate.nodeSelector: found a key that no label can have; allowed: up to 63 letters, digits, -, _ and " +
			"., after a domain and / if any"},
	{"e.name.startsWith('RELAYOPS_')", minimalPipeline, "spec/podTemplate", `{env: [{name: RELAYOPS_MIGRATE, value: "true"}]}`,
		"spec.podTemplate.env: found a name that begins with RELAYOPS_; allowed: other names, such as LOG_LEVEL"},
	{"v.name.startsWith('relayops-')", minimalPipeline, "spec/podTemplate", `{volumes: [{name: relayops-spec, emptyDir: {}}]}`,
		"spec.podTemplate.volumes: found a name that begins with relayops-; allowed: other names"},
	{"has(v.persistentVolumeClaim)", minimalPipeline, "spec/podTemplate", `{volumes: [{name: root, hostPath: {path: /}}]}`,
		"spec.podTemplate.volumes: found a volume of a kind that restricted pods may not have; allowed: configMap, " +
			"secret, emptyDir, projected, persistentVolumeClaim, csi, ephemeral and downwardAPI"},
	{"m.mountPath", minimalRelay, "spec/podTemplate", `{volumeMounts: [{name: a, mountPath: /etc/relayops/secrets}]}`,
		"spec.podTemplate.volumeMounts: found a mount that hides the operator's own; allowed: not /etc, and nothing that " +
			"begins with /etc/relayops"},
	// Pipeline
	{"(self.startFrom == 'Time') == has(self.startTime)", minimalPipeline, "spec/startFrom", "Time",
		"spec.startTime: found startFrom Time without startTime, or startTime without startFrom Time; allowed: both or none"},
	{"duration(self.stepTimeout) <= duration(self.pipelineTimeout)", minimalPipeline, "spec/stepTimeout", "16m",
		"spec.stepTimeout: found 16m beside a pipelineTimeout of 15m; allowed: at most pipelineTimeout"},
	{"duration(n.timeout)", minimalPipeline, "spec/nodes/0/timeout", "16m",
		"spec.nodes: found a node timeout above the pipelineTimeout of 15m; allowed: at most pipelineTimeout"},
	{"e.from in ids", minimalPipeline, "spec/edges", twoEdges,
		"spec.edges: found an edge that begins or ends at no node; allowed: ids of nodes"},
	{"duration('1ms') && duration(self) <= duration('1h')", minimalPipeline, "spec/nodes/0/timeout", "0s",
		"spec.nodes[0].timeout: found 0s; allowed: from 1ms to 1h"},
	{"duration('1s') && duration(self) <= duration('10000h')", minimalPipeline, "spec/deadline", "500ms",
		"spec.deadline: found 500ms; allowed: from 1s to 10000h"},
	{"has(self.httpStatus) || has(self.code)", minimalPipeline, "spec/nodes/0/classify", "[{as: retry}]",
		"spec.nodes[0].classify[0]: found neither httpStatus nor code; allowed: at least one of them"},
	{"quantity('1Ki')", minimalPipeline, "spec/http/maxResponseBytes", `"1.5"`,
		"spec.http.maxResponseBytes: found 1.5; allowed: from 1Ki to 64Mi"},
	{"isCIDR(self)", minimalPipeline, "spec/http/allowedCidrs", "[127.0.0.1]",
		"spec.http.allowedCidrs[0]: found 127.0.0.1; allowed: a range of addresses, such as 10.1.0.0/16 or fd00::/8"},
}

func TestRules(t *testing.T) {
	for _, one := range ruleCases {
		t.Run(one.rule, func(t *testing.T) {
			_, problems := read(with(t, one.base, one.path, one.value))
			if got := briefs(problems); got != one.want {
				t.Errorf("found\n%s\nwant\n%s", got, one.want)
			}
		})
	}
}

var transitions = []struct {
	rule, base, path, before, after, want string
}{
	{"instance", minimalRelay, "spec/instance", "a", "b", "spec.instance"},
	{"self.table == oldSelf.table", minimalRelay, "spec/table", "{name: a}", "{name: b}", "spec.table"},
	{"self.table == oldSelf.table", minimalRelay, "spec/table", "null", "{name: b}", "spec.table"},
	{"relayRef", minimalPipeline, "spec/relayRef/name", "a", "b", "spec.relayRef"},
	{"startFrom is", minimalPipeline, "spec/startFrom", "Now", "Beginning", "spec.startFrom"},
	{"self.startTime == oldSelf.startTime", minimalPipeline, "spec/startTime", "2026-01-01T00:00:00Z",
		"2026-01-02T00:00:00Z", "spec.startTime"},
}

func TestImmutableFields(t *testing.T) {
	kinds, err := definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range transitions {
		t.Run(one.want+" "+one.after, func(t *testing.T) {
			before, after := object(t, with(t, one.base, one.path, one.before)), object(t, with(t, one.base, one.path, one.after))
			definition := kinds[before["kind"].(string)]
			for _, version := range []map[string]any{before, after} {
				defaulting.PruneNonNullableNullsWithoutDefaults(version, definition.structural)
				defaulting.Default(version, definition.structural)
			}
			faults, _ := definition.rules.Validate(context.Background(), nil, definition.structural, after, before,
				celconfig.RuntimeCELCostBudget)
			found := false
			for _, fault := range faults {
				found = found || fault.Field == one.want && strings.Contains(fault.Detail, "is immutable; allowed: what it was")
			}
			if !found {
				t.Errorf("found %v; want a fault of %s", faults, one.want)
			}
			same, _ := definition.rules.Validate(context.Background(), nil, definition.structural, before, before,
				celconfig.RuntimeCELCostBudget)
			for _, fault := range same {
				if strings.Contains(fault.Detail, "immutable") {
					t.Errorf("an object that did not change: found %v", fault)
				}
			}
		})
	}
}

// Each rule of the definitions is broken by some case above.
func TestEveryRuleHasACase(t *testing.T) {
	documents, err := crd.YAML()
	if err != nil {
		t.Fatal(err)
	}
	covered := func(rule apiextensionsv1.ValidationRule) bool {
		for _, one := range ruleCases {
			if strings.Contains(rule.Rule, one.rule) {
				return true
			}
		}
		for _, one := range transitions {
			if strings.Contains(rule.Rule, "oldSelf") && strings.Contains(rule.Rule+rule.Message, one.rule) {
				return true
			}
		}
		return false
	}
	rules := 0
	for _, document := range documents {
		var one apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(document, &one); err != nil {
			t.Fatal(err)
		}
		eachRule(*one.Spec.Versions[0].Schema.OpenAPIV3Schema, func(rule apiextensionsv1.ValidationRule) {
			rules++
			if !covered(rule) {
				t.Errorf("%s: found no case that breaks the rule %s", one.Spec.Names.Kind, rule.Rule)
			}
		})
	}
	if rules < 40 {
		t.Errorf("found %d rules; want all of them", rules)
	}
}

func eachRule(at apiextensionsv1.JSONSchemaProps, visit func(apiextensionsv1.ValidationRule)) {
	for _, rule := range at.XValidations {
		visit(rule)
	}
	for _, child := range at.Properties {
		eachRule(child, visit)
	}
	if at.Items != nil && at.Items.Schema != nil {
		eachRule(*at.Items.Schema, visit)
	}
	if at.AdditionalProperties != nil && at.AdditionalProperties.Schema != nil {
		eachRule(*at.AdditionalProperties.Schema, visit)
	}
}

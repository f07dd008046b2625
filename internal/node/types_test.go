package node

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node/httprequest"
	"github.com/relayops/relayops/internal/runspec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// orderPost is the pipeline that users of the order platform have (requirement A6), but for the host.
const orderPost = `{ "nodes": [
    { "id": "start", "type": "start" },
    { "id": "notify", "type": "http-request",
      "config": { "method": "POST", "url": "https://erp.example.com/orders",
                  "body": { "number": "{{orderNumber}}", "total": "{{order.totalAmount}}" } },
      "onError": "abort" },
    { "id": "ok", "type": "set-status",
      "config": { "statusTag": "success", "name": "Integrated with ERP", "phase": "order.post" } } ],
  "edges": [ { "from": "start", "to": "notify" }, { "from": "notify", "to": "ok", "branch": "success" } ] }`

func compile(t testing.TB, text string) *engine.Graph {
	t.Helper()
	def, err := engine.ParseDefinition([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	graph, err := engine.Compile(def, Types())
	if err != nil {
		t.Fatal(err)
	}
	return graph
}

func execution(payload string) engine.Execution {
	return engine.Execution{
		ID: uuid.MustParse("0197a5f0-0000-7000-8000-000000000001"), PipelineKey: "dev/default/orders", OperationVersion: 1,
		Attempt: 1, MaxAttempts: 5,
		Event: event.Envelope{
			ID: uuid.MustParse("0197a5f0-0000-7000-8000-0000000000ee"), OrgID: "acme", EventType: "OrderConfirmed",
			EventVersion: 1, Payload: json.RawMessage(payload), OccurredAt: time.Unix(1700000000, 0), AggregateType: "Order", AggregateID: "A-1",
		},
	}
}

// journal keeps every committed step.
type journal struct{ steps []engine.Step }

func (j *journal) Commit(_ context.Context, steps []engine.Step) error {
	j.steps = append(j.steps, steps...)
	return nil
}

// roundTrip answers requests without a network, whatever their host.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

func TestTheOrderPlatformsPipelineRunsUnchanged(t *testing.T) {
	graph := compile(t, orderPost)
	var bodies []string
	status := http.StatusInternalServerError
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, r.Method+" "+r.URL.String()+" "+string(body))
		return answer(status, `{"erpId": 7}`), nil
	})}
	first := execution(`{"orderNumber": "A-1", "order": {"totalAmount": 12.50}}`)
	records := &journal{}
	runtime := engine.Runtime{
		Journal: records, StepTimeout: time.Minute, Parallelism: 2, Services: engine.Services{HTTP: client},
	}
	result, err := graph.Run(t.Context(), first, runtime)
	if err != nil || result.Outcome != engine.Failed || result.Failure.Class != engine.ClassRetry || result.Failure.HTTPStatus != 500 {
		t.Fatalf("first attempt: %+v, %v", result, err)
	}
	second := first
	second.Attempt, second.Completed = 2, slices.Concat(records.steps, result.Pending)
	status = http.StatusOK
	result, err = graph.Run(t.Context(), second, runtime)
	if err != nil || result.Outcome != engine.Succeeded {
		t.Fatalf("second attempt: %+v, %v", result, err)
	}
	want := `POST https://erp.example.com/orders {"number":"A-1","total":12.50}`
	if len(bodies) != 2 || bodies[0] != want || bodies[1] != want {
		t.Errorf("the ERP saw %q", bodies)
	}
	last := result.Pending[len(result.Pending)-1]
	if len(last.Tags) != 1 || last.Tags[0].Tag != "success" || last.Tags[0].Name != "Integrated with ERP" || last.Tags[0].Phase != "order.post" {
		t.Errorf("the last step is %+v", last)
	}
}

// All node types in one pipeline, against a real server: an order that is large is split off, the ERP's refusal is
// rescued, and a join brings the branches together.
func TestAPipelineOfAllTypes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/stock/") {
			http.Error(w, "unknown", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"erpId": 7}`)
	}))
	defer server.Close()
	client, err := httprequest.NewClient(runspec.HTTPPolicy{AllowedCIDRs: []string{"127.0.0.0/8"}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	graph := compile(t, strings.ReplaceAll(`{"nodes": [
		{"id": "start", "type": "start"},
		{"id": "erp", "type": "http-request", "config": {"url": "URL/orders", "body": {"n": "{{orderNumber}}"}}},
		{"id": "stock", "type": "http-request", "config": {"url": "URL/stock/{{orderNumber}}"}},
		{"id": "no-stock", "type": "set-status", "config": {"statusTag": "no stock ({{steps.stock.httpStatus}})"}},
		{"id": "size", "type": "switch", "config": {"cases": [{"when": "payload.total > 1000", "branch": "large"}], "default": "small"}},
		{"id": "approve", "type": "publish", "config": {"subject": "approvals.{{event.orgId}}"}},
		{"id": "sum", "type": "transform", "config": {"output": {"erp": "{{steps.erp.output.body.erpId}}", "stock": "{{steps.stock.output.body?}}"},
			"expressions": {"tax": "payload.total * 0.25"}}},
		{"id": "known", "type": "condition", "config": {"expression": "steps.sum.output.erp == 7"}},
		{"id": "done", "type": "emit-event", "config": {"eventType": "OrderPosted", "payload": "{{steps.sum.output}}"}},
		{"id": "lost", "type": "set-status", "config": {"statusTag": "lost"}}],
	"edges": [
		{"from": "start", "to": "erp"}, {"from": "start", "to": "stock"}, {"from": "start", "to": "size"},
		{"from": "stock", "to": "sum"}, {"from": "stock", "to": "no-stock", "branch": "error"},
		{"from": "size", "to": "approve", "branch": "large"}, {"from": "size", "to": "sum", "branch": "small"},
		{"from": "erp", "to": "sum"}, {"from": "approve", "to": "sum"}, {"from": "sum", "to": "known"},
		{"from": "known", "to": "done", "branch": "true"}, {"from": "known", "to": "lost", "branch": "false"}]}`, "URL", server.URL))
	records := &journal{}
	result, err := graph.Run(t.Context(), execution(`{"orderNumber": "A-1", "total": 10.50}`), engine.Runtime{
		Journal: records, StepTimeout: time.Minute, Parallelism: 4, Services: engine.Services{HTTP: client},
	})
	if err != nil || result.Outcome != engine.Succeeded {
		t.Fatalf("%+v, %v", result, err)
	}
	got := map[string]string{}
	var emitted []event.Envelope
	for _, step := range append(records.steps, result.Pending...) {
		got[step.NodeID] = strings.TrimSpace(string(step.Outcome) + " " + step.Branch)
		emitted = append(emitted, step.Events...)
	}
	for node, want := range map[string]string{
		"start": "SUCCEEDED success", "erp": "SUCCEEDED success", "stock": "FAILED error", "no-stock": "SUCCEEDED success",
		"size": "SUCCEEDED small", "approve": "SKIPPED", "sum": "SUCCEEDED success", "known": "SUCCEEDED true",
		"done": "SUCCEEDED success", "lost": "SKIPPED",
	} {
		if got[node] != want {
			t.Errorf("%s: %s, want %s", node, got[node], want)
		}
	}
	if len(emitted) != 1 || string(emitted[0].Payload) != `{"erp":7,"stock":null,"tax":2.625}` {
		t.Errorf("emitted %+v", emitted)
	}
}

func TestSchemasCompileAndNamesAreUnique(t *testing.T) {
	types := Types()
	if len(types) != 8 {
		t.Errorf("%d types", len(types))
	}
	for name, nodeType := range types {
		if nodeType.Name() != name {
			t.Errorf("%s is registered as %s", nodeType.Name(), name)
		}
		_, err := engine.Compile(engine.Definition{Nodes: []engine.Node{
			{ID: "start", Type: "start"}, {ID: "n", Type: name, Config: []byte(`{"no such field": 1}`)},
		}}, types)
		if err == nil || !strings.Contains(err.Error(), `nodes[1].config["no such field"] (node "n"): found an unknown field`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzDefinition: whatever a pipeline's text is, it compiles or is refused, in bounded time; and what compiles runs.
func FuzzDefinition(f *testing.F) {
	f.Add([]byte(orderPost))
	f.Add([]byte(`{"nodes":[{"id":"s","type":"start"},{"id":"t","type":"transform","timeout":"1s","classify":[{"code":"timeout","as":"cancel"}],
		"config":{"output":{"a":["{{x?}}",1e5]},"expressions":{"b":"payload.c + steps.s.httpStatus"}}}],"edges":[{"from":"s","to":"t"}]}`))
	f.Add([]byte(`{"nodes":[{"id":"s","type":"start"},{"id":"c","type":"condition","config":{"expression":"true"}},{"id":"w","type":"switch",
		"config":{"cases":[{"when":"payload == 1","branch":"a"}],"default":"b"}}],"edges":[{"from":"s","to":"c"},{"from":"c","to":"w","branch":"true"},
		{"from":"c","to":"w","branch":"error"}]}`))
	f.Add([]byte(`{"nodes":[{"id":"s","type":"start"},{"id":"e","type":"emit-event","onError":"continue","config":{"eventType":"A","payload":{}}},
		{"id":"p","type":"publish","config":{"subject":"a.{{event.id}}","headers":{"A":"b"},"body":"x"}}],"edges":[{"from":"s","to":"e"},{"from":"e","to":"p"}]}`))
	f.Add([]byte(`{"nodes":[{"id":"a","type":"start"},{"id":"b","type":"start"},{"id":"b"}],"edges":[{"from":"a","to":"b"},{"from":"b","to":"a"},{"from":"x"}]}`))
	types := Types()
	offline := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(200, `{}`), nil })}
	f.Fuzz(func(t *testing.T, text []byte) {
		began := time.Now()
		def, err := engine.ParseDefinition(text)
		if err != nil {
			return
		}
		graph, err := engine.Compile(def, types)
		if took := time.Since(began); took > 10*time.Second {
			t.Fatalf("took %s", took)
		}
		if err != nil {
			var faults engine.FieldErrors
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("%T %v", err, err)
			}
			for _, fault := range faults {
				if fault.Field == "" || fault.Found == "" || fault.Allowed == "" {
					t.Fatalf("%#v", fault)
				}
			}
			return
		}
		result, err := graph.Run(t.Context(), execution(`{"x": 1}`), engine.Runtime{
			StepTimeout: 5 * time.Second, Parallelism: 2, Services: engine.Services{HTTP: offline},
		})
		if err != nil || result.Outcome == "" {
			t.Fatalf("%+v, %v", result, err)
		}
	})
}

func BenchmarkRunThreeNodes(b *testing.B) {
	graph := compile(b, orderPost)
	client := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(200, `{"erpId": 7}`), nil })}
	one := execution(`{"orderNumber": "A-1", "order": {"totalAmount": 12.50}}`)
	runtime := engine.Runtime{Journal: &journal{}, StepTimeout: time.Minute, Parallelism: 2, Services: engine.Services{HTTP: client}}
	b.ReportAllocs()
	for b.Loop() {
		runtime.Journal = &journal{}
		if result, err := graph.Run(b.Context(), one, runtime); err != nil || result.Outcome != engine.Succeeded {
			b.Fatal(result, err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	def, err := engine.ParseDefinition([]byte(orderPost))
	if err != nil {
		b.Fatal(err)
	}
	types := Types()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := engine.Compile(def, types); err != nil {
			b.Fatal(err)
		}
	}
}

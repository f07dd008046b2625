package emitevent

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node/nodetest"
)

const simple = `{"eventType": "InvoiceRequested", "payload": {"number": "{{orderNumber}}"}}`

func emit(t *testing.T, c nodetest.Case) (event.Envelope, *engine.Failure) {
	t.Helper()
	c.Type = Type{}
	if c.Payload == "" {
		c.Payload = `{"orderNumber": "A-1", "orgId": "evil", "kind": "Paid", "bad": "no spaces"}`
	}
	step, failure := nodetest.Run(t, c)
	if failure != nil {
		if len(step.Events) > 0 {
			t.Errorf("a failed step emits %v", step.Events)
		}
		return event.Envelope{}, failure
	}
	if len(step.Events) != 1 {
		t.Fatalf("%d events", len(step.Events))
	}
	if want := `{"eventId":"` + step.Events[0].ID.String() + `","eventType":"` + step.Events[0].EventType + `"}`; string(step.Output) != want {
		t.Errorf("output %s, want %s", step.Output, want)
	}
	return step.Events[0], nil
}

func TestEmit(t *testing.T) {
	got, failure := emit(t, nodetest.Case{Config: simple})
	if failure != nil {
		t.Fatal(failure)
	}
	parent := got.Headers[event.HeaderTraceParent]
	if len(parent) != 55 || !strings.HasPrefix(parent, "00-0197a5f0111170008000000000000001-") {
		t.Errorf("traceparent %q, want the trace of the execution", parent)
	}
	if !maps.Equal(got.Headers, map[string]string{HeaderDepth: "1", event.HeaderTraceParent: parent}) {
		t.Errorf("headers %v", got.Headers)
	}
	got.Headers = nil
	want := event.Envelope{
		ID: uuid.NewSHA1(nodetest.ExecutionID, []byte("n/0")), OrgID: "acme", EventType: "InvoiceRequested", EventVersion: 1,
		AggregateType: "Order", AggregateID: "A-1", CorrelationID: "corr-1", CausationID: nodetest.EventID.String(),
		Payload: got.Payload, OccurredAt: nodetest.Now,
	}
	if string(got.Payload) != `{"number":"A-1"}` || got.ID != want.ID || got.OrgID != want.OrgID ||
		got.EventType != want.EventType || got.EventVersion != want.EventVersion || got.AggregateType != want.AggregateType ||
		got.AggregateID != want.AggregateID || got.CorrelationID != want.CorrelationID || got.CausationID != want.CausationID ||
		!got.OccurredAt.Equal(want.OccurredAt) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// A step that runs again, after a crash or in the next attempt, emits the same event; another execution, such as a
// reprocess, another one.
func TestEmitIsTheSameEventInEveryAttempt(t *testing.T) {
	first, _ := emit(t, nodetest.Case{Config: simple})
	second, _ := emit(t, nodetest.Case{Config: simple, Change: func(e *engine.Execution) { e.Attempt = 4 }})
	other, _ := emit(t, nodetest.Case{Config: simple, Change: func(e *engine.Execution) { e.ID = uuid.Max }})
	if first.ID != second.ID || first.ID == other.ID {
		t.Errorf("ids %s, %s, %s", first.ID, second.ID, other.ID)
	}
}

// Whatever the configuration and the payload say, the event belongs to the execution's organisation (guarantee 8).
func TestEmitStaysInItsOrg(t *testing.T) {
	got, failure := emit(t, nodetest.Case{Config: `{"eventType": "{{kind}}", "payload": "{{payload}}"}`})
	if failure != nil || got.OrgID != "acme" {
		t.Errorf("%+v, %v", got, failure)
	}
	if got := nodetest.Faults(t, Type{}, `{"eventType": "A", "payload": 1, "orgId": "evil"}`); !strings.Contains(got, "orgId: found an unknown field") {
		t.Error(got)
	}
}

func TestEmitFields(t *testing.T) {
	got, failure := emit(t, nodetest.Case{
		Config: `{"eventType": "Order{{kind}}", "eventVersion": 3, "aggregateType": "Invoice", "aggregateId": "I-{{orderNumber}}", "payload": null}`,
		Change: func(e *engine.Execution) {
			e.Event.CorrelationID = ""
			e.Event.Headers = map[string]string{
				HeaderDepth: "3", "other": "x", event.HeaderTraceState: "v=1",
				event.HeaderTraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			}
		},
	})
	if failure != nil {
		t.Fatal(failure)
	}
	parent := got.Headers[event.HeaderTraceParent]
	if got.EventType != "OrderPaid" || got.EventVersion != 3 || got.AggregateType != "Invoice" || got.AggregateID != "I-A-1" ||
		string(got.Payload) != "null" || got.CorrelationID != nodetest.EventID.String() || got.Headers[HeaderDepth] != "4" ||
		got.Headers["other"] != "" || got.Headers[event.HeaderTraceState] != "v=1" {
		t.Errorf("%+v", got)
	}
	if !strings.HasPrefix(parent, "00-4bf92f3577b34da6a3ce929d0e0e4736-") || !strings.HasSuffix(parent, "-01") || strings.Contains(parent, "00f067aa0ba902b7") {
		t.Errorf("traceparent %q", parent)
	}
}

func TestEmitFailures(t *testing.T) {
	depth := func(text string) func(*engine.Execution) {
		return func(e *engine.Execution) { e.Event.Headers = map[string]string{HeaderDepth: text} }
	}
	tests := []struct {
		name string
		c    nodetest.Case
		code engine.Code
	}{
		{"a bad type", nodetest.Case{Config: `{"eventType": "{{bad}}", "payload": 1}`}, engine.CodeEventRefused},
		{"an unset type", nodetest.Case{Config: `{"eventType": "{{nothing}}", "payload": 1}`}, engine.CodePlaceholderUnset},
		{"a deep chain", nodetest.Case{Config: simple, Change: depth(strconv.Itoa(MaxDepth))}, engine.CodeEventRefused},
		{"a depth that is no number", nodetest.Case{Config: simple, Change: depth("many")}, engine.CodeEventRefused},
		{"a negative depth", nodetest.Case{Config: simple, Change: depth("-1")}, engine.CodeEventRefused},
		{"a large payload", nodetest.Case{
			Config:  `{"eventType": "A", "payload": ["{{big}}", "{{big}}"]}`,
			Payload: `{"big": "` + strings.Repeat("x", 5<<20) + `"}`,
		}, engine.CodeEventRefused},
	}
	for _, test := range tests {
		_, failure := emit(t, test.c)
		if failure == nil || failure.Code != test.code || failure.Class != engine.ClassDeadLetter {
			t.Errorf("%s: %v, want %s", test.name, failure, test.code)
		}
	}
	if _, failure := emit(t, nodetest.Case{Config: simple, Change: depth(strconv.Itoa(MaxDepth - 1))}); failure != nil {
		t.Errorf("the last event of a chain: %v", failure)
	}
}

func TestEmitFaults(t *testing.T) {
	for config, want := range map[string]string{
		`{}`: "eventType: found nothing; allowed: the event's type, such as InvoiceRequested; may have placeholders (required)\n" +
			"payload: found nothing; allowed: any JSON, with placeholders in its strings (required)",
		`{"eventType": "no spaces", "payload": 1}`: `eventType: found "no spaces"; allowed: a letter, then letters, digits, '.', '_' or '-', at most 128 bytes`,
		`{"eventType": "A", "eventVersion": 0, "payload": {"a": ["{{"]}}`: "eventVersion: found 0; allowed: at least 1\n" +
			"payload.a[0]: found the placeholder {{; allowed: after {{: a name; {{{{ stands for a literal {{",
	} {
		if got := nodetest.Faults(t, Type{}, config); got != want {
			t.Errorf("%s:\n got %s\nwant %s", config, got, want)
		}
	}
}

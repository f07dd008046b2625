package trace_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/relayops/relayops/internal/cli/trace"
	"github.com/relayops/relayops/internal/engine"
	read "github.com/relayops/relayops/internal/trace"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	committed = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	eventID   = uuid.MustParse("0198c5a0-0000-7000-8000-000000000001")
	execID    = uuid.MustParse("0198c5a0-0000-7000-8000-000000000002")
	otherID   = uuid.MustParse("0198c5a0-0000-7000-8000-000000000003")
)

func TestGolden(t *testing.T) {
	for name, story := range map[string]read.Story{
		"retried": {
			Event: event(), Publication: published(),
			Executions: []read.Execution{retried()},
		},
		"dead-lettered": {
			Event: event(), Publication: published(),
			Executions: []read.Execution{deadLettered()},
		},
		"waiting-for-retry": {
			Event: event(), Publication: published(),
			Executions: []read.Execution{{
				ID: execID, PipelineKey: "dev/default/order-post", OperationVersion: 1, Revision: "abc", State: "RETRY",
				Attempt: 1, Code: "timeout", Executing: ms(10_000), CreatedAt: after(20), DueAt: new(after(12_500)),
				Attempts: []read.Attempt{{Number: 1, Steps: []read.Step{
					step("notify", "http-request", "FAILED", 21, 10_000, "timeout", 0),
				}}},
			}},
		},
		"running-reprocess": {
			Event: event(), Publication: published(),
			Executions: []read.Execution{{
				ID: execID, PipelineKey: "dev/default/order-post", OperationVersion: 2, Revision: "abc", State: "RUNNING",
				Attempt: 1, CreatedAt: after(20), LeaseOwner: "worker-7f", LeaseUntil: new(after(30_000)),
				Attempts: []read.Attempt{{Number: 1}},
			}},
		},
		"pending": {
			Event: event(),
			Publication: &read.Publication{
				Table: "relayops.outbox_events", Status: "PENDING", FailedAttempts: 1, LastError: "message_too_large",
				AvailableAt: new(after(15_000)),
			},
		},
		"failed": {
			Event: event(),
			Publication: &read.Publication{
				Table: "relayops.outbox_events", Status: "FAILED", FailedAttempts: 10, LastError: "message_too_large",
			},
		},
		"published-and-unclaimed": {Event: event(), Publication: published()},
		"pruned-and-undecodable": {
			Event: read.Event{ID: eventID, OrgID: "acme"},
			DeadLetters: []read.DeadLetter{{
				ID: otherID, OrgID: "acme", PipelineKey: "dev/default/order-post", EventID: &eventID,
				Code: "schema_invalid", Stream: "RELAYOPS", StreamSeq: 42, CreatedAt: after(40),
			}},
		},
		"long-names": {
			Event: event(), Publication: published(),
			Executions: []read.Execution{longNames()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := trace.Render(&b, story, after(12_000)); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
					t.Errorf("%d columns, allowed: 100: %q", n, line)
				}
			}
			golden(t, name, b.String())
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant:\n%s", path, got, want)
	}
}

func event() read.Event {
	occurred := committed.Add(-2 * time.Millisecond)
	return read.Event{
		ID: eventID, OrgID: "acme", Type: "OrderConfirmed", Version: 1, AggregateType: "Order", AggregateID: "1042",
		CorrelationID: "checkout-77", TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		OccurredAt: &occurred, CommittedAt: &committed,
	}
}

func published() *read.Publication {
	lag := ms(14)
	return &read.Publication{
		Table: "relayops.outbox_events", Status: "PUBLISHED", PublishedAt: new(after(14)), Stream: "RELAYOPS",
		StreamSeq: 42, Lag: &lag,
	}
}

func retried() read.Execution {
	backOff := ms(1500)
	return read.Execution{
		ID: execID, PipelineKey: "dev/default/order-post", OperationVersion: 1, Revision: "3f2a9c51d0aa77",
		State: "SUCCEEDED", Attempt: 4, Executing: ms(650), CreatedAt: after(20), FinishedAt: new(after(6200)),
		Attempts: []read.Attempt{
			{Number: 1, BackOff: &backOff, Steps: []read.Step{
				step("start", "start", "SUCCEEDED", 20, 0, "", 0),
				step("notify", "http-request", "FAILED", 21, 300, "http_status", 500),
			}},
			{Number: 2, Steps: []read.Step{step("notify", "http-request", "FAILED", 1821, 300, "http_status", 503)}},
			{Number: 3},
			{Number: 4, Steps: []read.Step{
				step("notify", "http-request", "SUCCEEDED", 6100, 90, "", 201),
				step("ok", "set-status", "SUCCEEDED", 6190, 0, "", 0),
				step("tell", "emit-event", "SUCCEEDED", 6191, 0, "", 0),
			}},
		},
		Tags:    []engine.StatusTag{{Phase: "order.post", Tag: "success", Name: "Integrated with ERP"}},
		Emitted: []read.EmittedEvent{{NodeID: "tell", EventID: otherID, EventType: "OrderPosted", Status: "PUBLISHED"}},
	}
}

func deadLettered() read.Execution {
	return read.Execution{
		ID: execID, PipelineKey: "dev/default/order-post", OperationVersion: 1, Revision: "3f2a9c51d0aa77",
		State: "DEAD_LETTERED", Attempt: 1, Executing: ms(12), CreatedAt: after(20), FinishedAt: new(after(33)),
		Attempts: []read.Attempt{{Number: 1, Steps: []read.Step{
			step("start", "start", "SUCCEEDED", 20, 0, "", 0),
			step("notify", "http-request", "FAILED", 21, 12, "http_status", 422),
		}}},
		DeadLetter: &read.DeadLetter{
			ID: otherID, OrgID: "acme", PipelineKey: "dev/default/order-post", ExecutionID: &execID,
			Code: "permanent_error", NodeID: "notify", HTTPStatus: 422, Attempt: 1, CreatedAt: after(33),
		},
	}
}

func longNames() read.Execution {
	e := deadLettered()
	e.Attempts[0].Steps = append(e.Attempts[0].Steps, step(strings.Repeat("very-long-", 6), "http-request", "FAILED",
		3_600_000, 125_000, "expression_cost_exceeded", 0))
	return e
}

func step(node, nodeType, outcome string, startMS, durationMS int, code string, status int32) read.Step {
	return read.Step{
		NodeID: node, NodeType: nodeType, Outcome: outcome, Code: code, HTTPStatus: status,
		StartedAt: after(startMS), FinishedAt: after(startMS + durationMS), Duration: ms(durationMS),
	}
}

func ms(n int) read.Milliseconds { return read.Milliseconds(time.Duration(n) * time.Millisecond) }

func after(milliseconds int) time.Time {
	return committed.Add(time.Duration(milliseconds) * time.Millisecond)
}

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/relayops/relayops/api/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func checkOutcomes(t *testing.T, steps []Step, want map[string]string) {
	t.Helper()
	if got := outcomes(steps); !maps.Equal(got, want) {
		t.Errorf("steps:\n got %v\nwant %v", got, want)
	}
}

// Everything about failures, onError and what is left of the attempts (guarantee 4).
func TestRunFailures(t *testing.T) {
	node := func(onError string) Node { return Node{ID: "call", Type: "external", OnError: onError} }
	withErrorEdge := func() Definition {
		def := chain(node(""), Node{ID: "next", Type: "pure"})
		def.Nodes = append(def.Nodes, Node{ID: "rescue", Type: "pure"})
		def.Edges = append(def.Edges, Edge{From: "call", To: "rescue", Branch: BranchError})
		return def
	}
	chained := func(onError string) Definition { return chain(node(onError), Node{ID: "next", Type: "pure"}) }
	classified := func(rules ...ClassRule) Definition {
		def := chained("")
		def.Nodes[1].Classify = rules
		return def
	}
	retry, permanent := failWith(ClassRetry, CodeTimeout), failWith(ClassDeadLetter, CodeInvalidRequest)
	tests := []struct {
		name    string
		def     Definition
		does    behaviour
		attempt int
		want    map[string]string
		failure string // class/code, empty for success
	}{
		{"a retry ends the attempt", chained(""), retry, 1,
			map[string]string{"start": "SUCCEEDED success", "call": "FAILED timeout"}, "retry/timeout"},
		{"a retry ends the attempt whatever onError says", chained("continue"), retry, 2,
			map[string]string{"start": "SUCCEEDED success", "call": "FAILED timeout"}, "retry/timeout"},
		{"a retry ends the attempt whatever edges there are", withErrorEdge(), retry, 2,
			map[string]string{"start": "SUCCEEDED success", "call": "FAILED timeout"}, "retry/timeout"},
		{"the last attempt's retry is final", chained(""), retry, 3,
			map[string]string{"start": "SUCCEEDED success", "call": "FAILED timeout"}, "retry/timeout"},
		{"the last attempt's retry continues", chained("continue"), retry, 3,
			map[string]string{"start": "SUCCEEDED success", "call": "CONTINUED success timeout", "next": "SUCCEEDED success"}, ""},
		{"the last attempt's retry takes the error edge", withErrorEdge(), retry, 3,
			map[string]string{"start": "SUCCEEDED success", "call": "FAILED error timeout", "rescue": "SUCCEEDED success", "next": "SKIPPED"}, ""},
		{"a permanent failure is final at once", chained("abort"), permanent, 1,
			map[string]string{"start": "SUCCEEDED success", "call": "FAILED invalid_request"}, "dead_letter/invalid_request"},
		{"a permanent failure continues at once", chained("continue"), permanent, 1,
			map[string]string{"start": "SUCCEEDED success", "call": "CONTINUED success invalid_request", "next": "SUCCEEDED success"}, ""},
		{"a permanent failure takes the error edge at once", withErrorEdge(), permanent, 1,
			map[string]string{"start": "SUCCEEDED success", "call": "FAILED error invalid_request", "rescue": "SUCCEEDED success", "next": "SKIPPED"}, ""},
		{"a success leaves the error edge dead", withErrorEdge(), nil, 1,
			map[string]string{"start": "SUCCEEDED success", "call": "SUCCEEDED success", "next": "SUCCEEDED success", "rescue": "SKIPPED"}, ""},
		{"a cancel ends the execution whatever onError says", chained("continue"), failWith(ClassCancel, CodeHTTPStatus), 1,
			map[string]string{"start": "SUCCEEDED success", "call": "FAILED http_status"}, "cancel/cancelled_by_pipeline"},
		{"a rule makes a retry permanent", classified(ClassRule{Code: CodeTimeout, As: ClassDeadLetter}), retry, 1,
			map[string]string{"start": "SUCCEEDED success", "call": "FAILED timeout"}, "dead_letter/timeout"},
		{"the first rule that matches counts", classified(ClassRule{Code: CodeHTTPStatus, As: ClassRetry},
			ClassRule{Code: CodeInvalidRequest, As: ClassCancel}, ClassRule{Code: CodeInvalidRequest, As: ClassRetry}), permanent, 1,
			map[string]string{"start": "SUCCEEDED success", "call": "FAILED invalid_request"}, "cancel/cancelled_by_pipeline"},
		{"an untyped error is permanent", chained(""), func(context.Context, *Call) (Output, error) { return Output{}, errors.New("x") }, 1,
			map[string]string{"start": "SUCCEEDED success", "call": "FAILED permanent_error"}, "dead_letter/permanent_error"},
		{"a panic is a permanent failure", chained(""), func(context.Context, *Call) (Output, error) { panic("broken") }, 1,
			map[string]string{"start": "SUCCEEDED success", "call": "FAILED node_panicked"}, "dead_letter/node_panicked"},
		{"a panic is a failure like others", chained("continue"), func(context.Context, *Call) (Output, error) { panic("broken") }, 1,
			map[string]string{"start": "SUCCEEDED success", "call": "CONTINUED success node_panicked", "next": "SUCCEEDED success"}, ""},
		{"an output beyond the limit", chained(""), func(context.Context, *Call) (Output, error) {
			return Output{Value: strings.Repeat("x", MaxOutputBytes)}, nil
		}, 1, map[string]string{"start": "SUCCEEDED success", "call": "FAILED output_too_large"}, "dead_letter/output_too_large"},
		{"an unknown class is none", chained(""), failWith("later", "no_such_code"), 1,
			map[string]string{"start": "SUCCEEDED success", "call": "FAILED no_such_code"}, "dead_letter/no_such_code"},
		{"a branch that the node does not have", chained(""), func(context.Context, *Call) (Output, error) {
			return Output{Branch: "elsewhere"}, nil
		}, 1, map[string]string{"start": "SUCCEEDED success", "call": "FAILED permanent_error"}, "dead_letter/permanent_error"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			types, _ := fakes(map[string]behaviour{"call": test.does})
			journal := &memoryJournal{}
			execution := someExecution()
			execution.Attempt = test.attempt
			result, err := mustCompile(t, test.def, types).Run(t.Context(), execution, Runtime{Journal: journal, Parallelism: 2})
			if err != nil {
				t.Fatal(err)
			}
			checkOutcomes(t, append(journal.steps(), result.Pending...), test.want)
			got, outcome := "", Succeeded
			if result.Failure != nil {
				got, outcome = string(result.Failure.Class)+"/"+string(result.Failure.Code), Failed
				if result.Failure.NodeID != "call" {
					t.Errorf("the failure names node %q", result.Failure.NodeID)
				}
			}
			if got != test.failure || result.Outcome != outcome {
				t.Errorf("%s with failure %q, want %q", result.Outcome, got, test.failure)
			}
		})
	}
}

func TestRunMatchesStatusRules(t *testing.T) {
	for pattern, want := range map[string]Class{"404": ClassCancel, "4xx": ClassCancel, "5xx": ClassDeadLetter, "405": ClassDeadLetter} {
		def := chain(Node{ID: "call", Type: "external", Classify: []ClassRule{{HTTPStatus: pattern, As: ClassCancel}}})
		types, _ := fakes(map[string]behaviour{"call": func(context.Context, *Call) (Output, error) {
			return Output{}, &Failure{Class: ClassDeadLetter, Code: CodeHTTPStatus, HTTPStatus: 404}
		}})
		result, err := mustCompile(t, def, types).Run(t.Context(), someExecution(), Runtime{})
		if err != nil || result.Failure == nil || result.Failure.Class != want || result.Failure.HTTPStatus != 404 {
			t.Errorf("rule %s: %+v, %v; want class %s", pattern, result.Failure, err, want)
		}
	}
}

// A step that acts on the world, or whose results are stored, is durable before the next one starts; with it go the
// pure ones before it. What the attempt ends with is left to the transaction that ends it (guarantee 3).
func TestRunCommitsEffectsBeforeTheNextStep(t *testing.T) {
	journal := &memoryJournal{}
	var durable []string // what the journal had when each step started
	watch := func(_ context.Context, call *Call) (Output, error) {
		var names []string
		for _, s := range journal.steps() {
			names = append(names, s.NodeID)
		}
		durable = append(durable, call.NodeID+" after "+strings.Join(names, ","))
		return Output{Tags: []StatusTag{{Tag: call.NodeID}}, Events: []event.Envelope{{EventType: call.NodeID}}}, nil
	}
	does := map[string]behaviour{}
	for _, id := range []string{"p1", "e1", "p2", "s1", "p3", "e2"} {
		does[id] = watch
	}
	types, _ := fakes(does)
	def := chain(Node{ID: "p1", Type: "pure"}, Node{ID: "e1", Type: "external"}, Node{ID: "p2", Type: "pure"},
		Node{ID: "s1", Type: "stored"}, Node{ID: "p3", Type: "pure"}, Node{ID: "e2", Type: "external"})
	result, err := mustCompile(t, def, types).Run(t.Context(), someExecution(), Runtime{Journal: journal, Parallelism: 4})
	if err != nil || result.Outcome != Succeeded {
		t.Fatalf("%+v, %v", result, err)
	}
	want := []string{
		"p1 after ", "e1 after ", "p2 after start,p1,e1", "s1 after start,p1,e1", "p3 after start,p1,e1,p2,s1",
		"e2 after start,p1,e1,p2,s1",
	}
	if !slices.Equal(durable, want) {
		t.Errorf("durable when a step started:\n got %q\nwant %q", durable, want)
	}
	if len(journal.commits) != 2 {
		t.Errorf("%d commits, want 2: the last step belongs to the transaction that ends the attempt", len(journal.commits))
	}
	checkOutcomes(t, result.Pending, map[string]string{"p3": "SUCCEEDED success", "e2": "SUCCEEDED success"})
	stored := journal.commits[1][1]
	if stored.NodeID != "s1" || len(stored.Tags) != 1 || stored.Tags[0].At.IsZero() || len(stored.Events) != 1 {
		t.Errorf("results did not commit with their step: %+v", stored)
	}
}

func TestRunWithoutAJournalLeavesEverythingPending(t *testing.T) {
	types, _ := fakes(nil)
	def := chain(Node{ID: "e1", Type: "external"}, Node{ID: "s1", Type: "stored"})
	result, err := mustCompile(t, def, types).Run(t.Context(), someExecution(), Runtime{})
	if err != nil || len(result.Pending) != 3 {
		t.Errorf("%+v, %v; want 3 pending steps", result, err)
	}
}

func TestRunEndsWhenTheJournalRefuses(t *testing.T) {
	lost := errors.New("lease lost")
	interrupted := make(chan struct{})
	types, world := fakes(map[string]behaviour{"slow": func(ctx context.Context, _ *Call) (Output, error) {
		<-ctx.Done()
		close(interrupted)
		return Output{}, ctx.Err()
	}})
	def := chain(Node{ID: "e1", Type: "external"}, Node{ID: "e2", Type: "external"})
	def.Nodes = append(def.Nodes, Node{ID: "slow", Type: "external"})
	def.Edges = append(def.Edges, Edge{From: "start", To: "slow"})
	result, err := mustCompile(t, def, types).Run(t.Context(), someExecution(),
		Runtime{Journal: &memoryJournal{fails: lost}, Parallelism: 2})
	if !errors.Is(err, lost) || len(result.Pending) != 0 || result.Outcome != "" {
		t.Errorf("%+v, %v", result, err)
	}
	<-interrupted
	if slices.Contains(world.ran(), "e2") {
		t.Error("a step started after the journal refused a record")
	}
}

// A lost lease: the steps are interrupted, nothing is recorded after.
func TestRunEndsWithItsContext(t *testing.T) {
	lost := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	types, world := fakes(map[string]behaviour{
		"e1": func(ctx context.Context, _ *Call) (Output, error) {
			cancel(lost)
			<-ctx.Done()
			return Output{}, ctx.Err()
		},
	})
	journal := &memoryJournal{}
	def := chain(Node{ID: "p1", Type: "pure"}, Node{ID: "e1", Type: "external"}, Node{ID: "e2", Type: "external"})
	result, err := mustCompile(t, def, types).Run(ctx, someExecution(), Runtime{Journal: journal, Parallelism: 2})
	if !errors.Is(err, lost) {
		t.Errorf("error %v, want the context's cause", err)
	}
	if len(journal.commits) != 0 {
		t.Errorf("recorded after the lease was lost: %v", journal.commits)
	}
	checkOutcomes(t, result.Pending, map[string]string{
		"start": "SUCCEEDED success", "p1": "SUCCEEDED success", "e1": "INTERRUPTED",
	})
	if slices.Contains(world.ran(), "e2") {
		t.Error("a step started after the lease was lost")
	}
}

func TestRunTimesStepsOut(t *testing.T) {
	tests := []struct {
		name        string
		own         time.Duration
		stepTimeout time.Duration
	}{{"the pipeline's timeout", 0, 20 * time.Millisecond}, {"the node's own", 20 * time.Millisecond, time.Minute}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			types, _ := fakes(map[string]behaviour{"call": succeedAfter(time.Minute)})
			node := Node{ID: "call", Type: "external"}
			node.Timeout = durationOf(test.own)
			result, err := mustCompile(t, chain(node), types).Run(t.Context(), someExecution(), Runtime{StepTimeout: test.stepTimeout})
			if err != nil || result.Outcome != Failed || result.Failure.Code != CodeTimeout || result.Failure.Class != ClassRetry {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
}

// SIGTERM: the step in hand is finished and recorded, the next is not begun; the attempt is handed back and goes on
// where it stopped (guarantee 10).
func TestRunHandsBackWhenDraining(t *testing.T) {
	draining := make(chan struct{})
	types, world := fakes(map[string]behaviour{"e1": func(context.Context, *Call) (Output, error) {
		close(draining)
		return Output{Value: "done"}, nil
	}})
	def := chain(Node{ID: "e1", Type: "external"}, Node{ID: "e2", Type: "external"})
	g := mustCompile(t, def, types)
	execution := someExecution()
	result, err := g.Run(t.Context(), execution, Runtime{Journal: &memoryJournal{}, Draining: draining})
	if err != nil || result.Outcome != HandedBack || result.Failure != nil {
		t.Fatalf("%+v, %v; want handed back", result, err)
	}
	checkOutcomes(t, result.Pending, map[string]string{"start": "SUCCEEDED success", "e1": "SUCCEEDED success"})
	if !slices.Equal(world.ran(), []string{"start", "e1"}) {
		t.Errorf("ran %v", world.ran())
	}
	execution.Completed = result.Pending
	result, err = g.Run(t.Context(), execution, Runtime{Journal: &memoryJournal{}})
	if err != nil || result.Outcome != Succeeded {
		t.Fatalf("%+v, %v; want success", result, err)
	}
	if !slices.Equal(world.ran(), []string{"start", "e1", "e2"}) {
		t.Errorf("in both attempts ran %v, want each step once", world.ran())
	}
}

func TestRunDrainedAfterItsLastStepSucceeds(t *testing.T) {
	draining := make(chan struct{})
	types, _ := fakes(map[string]behaviour{"e1": func(context.Context, *Call) (Output, error) {
		close(draining)
		return Output{}, nil
	}})
	result, err := mustCompile(t, chain(Node{ID: "e1", Type: "external"}), types).Run(t.Context(), someExecution(),
		Runtime{Journal: &memoryJournal{}, Draining: draining})
	if err != nil || result.Outcome != Succeeded {
		t.Errorf("%+v, %v; want success: nothing was left", result, err)
	}
}

// One branch fails: the sibling that runs is finished and recorded, the one that waits does not start.
func TestRunFinishesSiblingsOfAFailure(t *testing.T) {
	failed := make(chan struct{})
	types, world := fakes(map[string]behaviour{
		"bad": func(context.Context, *Call) (Output, error) {
			defer close(failed)
			return Output{}, Permanent(CodeInvalidRequest, nil)
		},
		"good": func(context.Context, *Call) (Output, error) {
			<-failed
			time.Sleep(20 * time.Millisecond)
			return Output{}, nil
		},
	})
	def := Definition{
		Nodes: []Node{{ID: "start", Type: TypeStart}, {ID: "bad", Type: "external"}, {ID: "good", Type: "external"},
			{ID: "late", Type: "external"}, {ID: "after", Type: "external"}},
		Edges: []Edge{{From: "start", To: "bad"}, {From: "start", To: "good"}, {From: "start", To: "late"}, {From: "good", To: "after"}},
	}
	journal := &memoryJournal{}
	result, err := mustCompile(t, def, types).Run(t.Context(), someExecution(), Runtime{Journal: journal, Parallelism: 2})
	if err != nil || result.Outcome != Failed || result.Failure.NodeID != "bad" {
		t.Fatalf("%+v, %v", result, err)
	}
	checkOutcomes(t, append(journal.steps(), result.Pending...), map[string]string{
		"start": "SUCCEEDED success", "bad": "FAILED invalid_request", "good": "SUCCEEDED success",
	})
	if ran := world.ran(); slices.Contains(ran, "late") || slices.Contains(ran, "after") {
		t.Errorf("a step started after the failure: %v", ran)
	}
}

func TestRunReportsTheGravestFailure(t *testing.T) {
	var together atomic.Int32
	fail := func(class Class, retryAfter time.Duration) behaviour {
		return func(context.Context, *Call) (Output, error) {
			together.Add(1)
			for together.Load() < 3 {
				time.Sleep(time.Millisecond)
			}
			return Output{}, &Failure{Class: class, Code: CodeHTTPStatus, RetryAfter: retryAfter}
		}
	}
	tests := []struct {
		classes [3]Class
		node    string
		wait    time.Duration
	}{
		{[3]Class{ClassRetry, ClassDeadLetter, ClassDeadLetter}, "b", 2 * time.Second},
		{[3]Class{ClassRetry, ClassDeadLetter, ClassCancel}, "c", 3 * time.Second},
		{[3]Class{ClassRetry, ClassRetry, ClassRetry}, "a", 3 * time.Second},
	}
	for _, test := range tests {
		together.Store(0)
		types, _ := fakes(map[string]behaviour{
			"a": fail(test.classes[0], time.Second), "b": fail(test.classes[1], 2*time.Second), "c": fail(test.classes[2], 3*time.Second),
		})
		def := Definition{
			Nodes: []Node{{ID: "start", Type: TypeStart}, {ID: "a", Type: "external"}, {ID: "b", Type: "external"}, {ID: "c", Type: "external"}},
			Edges: []Edge{{From: "start", To: "a"}, {From: "start", To: "b"}, {From: "start", To: "c"}},
		}
		result, err := mustCompile(t, def, types).Run(t.Context(), someExecution(), Runtime{Parallelism: 3})
		if err != nil || result.Failure.NodeID != test.node || result.Failure.RetryAfter != test.wait {
			t.Errorf("%v: %+v, %v; want node %s, wait %s", test.classes, result.Failure, err, test.node, test.wait)
		}
	}
}

func TestRunBoundsParallelism(t *testing.T) {
	var running, most atomic.Int32
	does := map[string]behaviour{}
	def := Definition{Nodes: []Node{{ID: "start", Type: TypeStart}}}
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		def.Nodes = append(def.Nodes, Node{ID: id, Type: "external"})
		def.Edges = append(def.Edges, Edge{From: "start", To: id})
		does[id] = func(context.Context, *Call) (Output, error) {
			now := running.Add(1)
			for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
			}
			time.Sleep(5 * time.Millisecond)
			running.Add(-1)
			return Output{}, nil
		}
	}
	types, _ := fakes(does)
	if _, err := mustCompile(t, def, types).Run(t.Context(), someExecution(), Runtime{Parallelism: 3}); err != nil {
		t.Fatal(err)
	}
	if most.Load() != 3 {
		t.Errorf("at most %d steps at once, want 3", most.Load())
	}
}

func TestRunGivesStepsWhatLiesBefore(t *testing.T) {
	var seen map[string]any
	types, _ := fakes(map[string]behaviour{
		"left":  failWith(ClassDeadLetter, CodeInvalidRequest),
		"right": func(context.Context, *Call) (Output, error) { return Output{Value: 7, HTTPStatus: 201}, nil },
		"join":  func(_ context.Context, call *Call) (Output, error) { seen = call.Data; return Output{}, nil },
	})
	def := Definition{
		Nodes: []Node{{ID: "start", Type: TypeStart}, {ID: "left", Type: "external", OnError: OnErrorContinue},
			{ID: "right", Type: "external"}, {ID: "never", Type: "pure"},
			{ID: "join", Type: "pure", Config: []byte(`{"reads": ["left", "right", "never"]}`)}},
		Edges: []Edge{{From: "start", To: "left"}, {From: "start", To: "right"}, {From: "right", To: "never", Branch: BranchError},
			{From: "left", To: "join"}, {From: "right", To: "join"}, {From: "never", To: "join"}},
	}
	execution := someExecution()
	if _, err := mustCompile(t, def, types).Run(t.Context(), execution, Runtime{Parallelism: 2}); err != nil {
		t.Fatal(err)
	}
	got, err := MarshalJSON(seen, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"context":{"attempt":1,"executionId":"0197a5f0-0000-7000-8000-000000000001",` +
		`"idempotencyKey":"0197a5f0-0000-7000-8000-000000000001/join","maxAttempts":3,"nodeId":"join","operationVersion":1,` +
		`"pipeline":"dev/default/orders"},"event":{"aggregateId":"","aggregateType":"","causationId":"","correlationId":"",` +
		`"eventType":"OrderConfirmed","eventVersion":1,"headers":{},"id":"0197a5f0-0000-7000-8000-0000000000ee",` +
		`"occurredAt":"2023-11-14T22:13:20Z","orgId":"acme","payload":{"orderNumber":"A-1"}},"payload":{"orderNumber":"A-1"},` +
		`"steps":{"left":{"branch":"success","code":"invalid_request","httpStatus":0,"outcome":"CONTINUED","output":null},` +
		`"never":{"branch":"","code":"","httpStatus":0,"outcome":"SKIPPED","output":null},` +
		`"right":{"branch":"success","code":"","httpStatus":201,"outcome":"SUCCEEDED","output":7}}}`
	if string(got) != want {
		t.Errorf("data:\n got %s\nwant %s", got, want)
	}
}

func TestRunRefusesARecordOfAnotherGraph(t *testing.T) {
	types, world := fakes(nil)
	for _, step := range []Step{
		{NodeID: "gone", Outcome: StepSucceeded, Branch: BranchSuccess},
		{NodeID: "e1", Outcome: StepSucceeded, Branch: "true"},
	} {
		execution := someExecution()
		execution.Completed = []Step{step}
		result, err := mustCompile(t, chain(Node{ID: "e1", Type: "external"}), types).Run(t.Context(), execution, Runtime{})
		if err != nil || result.Outcome != Failed || result.Failure.Code != CodeRevisionMissing {
			t.Errorf("%+v, %v", result, err)
		}
	}
	if len(world.ran()) > 0 {
		t.Errorf("ran %v", world.ran())
	}
}

func TestRunRunsAgainWhatIsNotOver(t *testing.T) {
	types, world := fakes(nil)
	execution := someExecution()
	execution.Completed = []Step{
		{NodeID: "start", Outcome: StepSucceeded, Branch: BranchSuccess},
		{NodeID: "e1", Outcome: StepFailed}, {NodeID: "e1", Outcome: StepInterrupted}, {NodeID: "e1", Outcome: StepSkipped},
	}
	result, err := mustCompile(t, chain(Node{ID: "e1", Type: "external"}), types).Run(t.Context(), execution, Runtime{})
	if err != nil || result.Outcome != Succeeded || !slices.Equal(world.ran(), []string{"e1"}) {
		t.Errorf("%+v, %v; ran %v", result, err, world.ran())
	}
}

func TestRunRefusesAPayloadThatIsNotJSON(t *testing.T) {
	types, _ := fakes(nil)
	execution := someExecution()
	execution.Event.Payload = []byte(`{"a":`)
	result, err := mustCompile(t, chain(), types).Run(t.Context(), execution, Runtime{})
	if err != nil || result.Failure == nil || result.Failure.Code != CodeSchemaInvalid {
		t.Errorf("%+v, %v", result, err)
	}
}

// What a step's error says, and what a panic carries, is never part of a record (guarantee 5).
func TestRunRecordsNoErrorText(t *testing.T) {
	for name, does := range map[string]behaviour{
		"a failure": func(context.Context, *Call) (Output, error) {
			return Output{Value: "hunter2"}, Permanent(CodeInvalidRequest, errors.New("hunter2"))
		},
		"an error": func(context.Context, *Call) (Output, error) { return Output{}, errors.New("hunter2") },
		"a panic":  func(context.Context, *Call) (Output, error) { panic("hunter2") },
	} {
		for _, onError := range []string{OnErrorAbort, OnErrorContinue} {
			types, _ := fakes(map[string]behaviour{"call": does})
			def := chain(Node{ID: "call", Type: "external", OnError: onError}, Node{ID: "next", Type: "external"})
			journal := &memoryJournal{}
			result, err := mustCompile(t, def, types).Run(t.Context(), someExecution(), Runtime{Journal: journal})
			if err != nil {
				t.Fatal(err)
			}
			records, err := json.Marshal(slices.Concat(journal.steps(), result.Pending))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(records), "hunter2") || !strings.Contains(string(records), "call") {
				t.Errorf("%s, %s: recorded %s", name, onError, records)
			}
		}
	}
}

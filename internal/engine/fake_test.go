package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/relayops/relayops/api/event"
)

// behaviour is what a fake node does.
type behaviour func(ctx context.Context, call *Call) (Output, error)

// fakeType is a node type whose nodes do what the test says, by node id; a node that it says nothing of succeeds.
// Its config: {"branches": [...], "reads": [...]}.
type fakeType struct {
	name   string
	effect Effect
	world  *fakeWorld
}

type fakeWorld struct {
	mu    sync.Mutex
	does  map[string]behaviour
	calls []string
}

func (t fakeType) Name() string   { return t.name }
func (t fakeType) Effect() Effect { return t.effect }
func (t fakeType) Schema() []byte {
	return []byte(`{"type": "object", "additionalProperties": false, "properties": {
		"branches": {"type": "array", "items": {"type": "string"}}, "reads": {"type": "array", "items": {"type": "string"}}}}`)
}

func (t fakeType) Compile(raw json.RawMessage) (Runner, error) {
	r := &fakeRunner{world: t.world}
	var mistyped *json.UnmarshalTypeError // The schema reports it.
	if err := json.Unmarshal(raw, r); err != nil && !errors.As(err, &mistyped) {
		return nil, FieldErrors{{Found: "text that is not JSON", Allowed: "JSON"}}
	}
	return r, nil
}

type fakeRunner struct {
	Own   []string `json:"branches"`
	Reads []string `json:"reads"`
	world *fakeWorld
}

func (r *fakeRunner) Branches() []string { return r.Own }

func (r *fakeRunner) References() []Reference {
	var all []Reference
	for _, step := range r.Reads {
		all = append(all, Reference{Step: step, Field: "reads"})
	}
	return all
}

func (r *fakeRunner) Run(ctx context.Context, call *Call) (Output, error) {
	r.world.mu.Lock()
	r.world.calls = append(r.world.calls, call.NodeID)
	does := r.world.does[call.NodeID]
	r.world.mu.Unlock()
	if does == nil {
		return Output{Value: map[string]any{"by": call.NodeID}}, nil
	}
	return does(ctx, call)
}

func (w *fakeWorld) ran() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

// fakes are the types start, pure, stored and external.
func fakes(does map[string]behaviour) (Registry, *fakeWorld) {
	world := &fakeWorld{does: does}
	registry := Registry{}
	for name, effect := range map[string]Effect{TypeStart: Pure, "pure": Pure, "stored": Stored, "external": External} {
		registry[name] = fakeType{name: name, effect: effect, world: world}
	}
	return registry, world
}

func succeedAfter(pause time.Duration) behaviour {
	return func(ctx context.Context, call *Call) (Output, error) {
		select {
		case <-time.After(pause):
			return Output{Value: map[string]any{"by": call.NodeID}}, nil
		case <-ctx.Done():
			return Output{}, context.Cause(ctx)
		}
	}
}

func failWith(class Class, code Code) behaviour {
	return func(context.Context, *Call) (Output, error) {
		return Output{}, &Failure{Class: class, Code: code, Err: errors.New("on purpose")}
	}
}

// chain is start → n1 → n2 …, with the types given as "id:type".
func chain(nodes ...Node) Definition {
	def := Definition{Nodes: append([]Node{{ID: "start", Type: TypeStart}}, nodes...)}
	for i := 1; i < len(def.Nodes); i++ {
		def.Edges = append(def.Edges, Edge{From: def.Nodes[i-1].ID, To: def.Nodes[i].ID})
	}
	return def
}

func mustCompile(t testing.TB, def Definition, types Registry) *Graph {
	t.Helper()
	g, err := Compile(def, types)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	return g
}

// memoryJournal keeps what was committed, one element for each transaction.
type memoryJournal struct {
	mu      sync.Mutex
	commits [][]Step
	fails   error
}

func (j *memoryJournal) Commit(_ context.Context, steps []Step) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fails != nil {
		return j.fails
	}
	j.commits = append(j.commits, slices.Clone(steps))
	return nil
}

func (j *memoryJournal) steps() []Step {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Concat(j.commits...)
}

func someExecution() Execution {
	return Execution{
		ID: uuid.MustParse("0197a5f0-0000-7000-8000-000000000001"), PipelineKey: "dev/default/orders",
		Event: event.Envelope{
			ID: uuid.MustParse("0197a5f0-0000-7000-8000-0000000000ee"), OrgID: "acme", EventType: "OrderConfirmed",
			EventVersion: 1, Payload: json.RawMessage(`{"orderNumber":"A-1"}`), OccurredAt: time.Unix(1700000000, 0),
		},
		OperationVersion: 1, Attempt: 1, MaxAttempts: 3,
	}
}

// outcomes is the outcome and branch of each step, by node.
func outcomes(steps []Step) map[string]string {
	all := map[string]string{}
	for _, s := range steps {
		text := string(s.Outcome)
		if s.Branch != "" {
			text += " " + s.Branch
		}
		if s.Code != "" {
			text += " " + string(s.Code)
		}
		if _, twice := all[s.NodeID]; twice {
			text = "TWICE " + text
		}
		all[s.NodeID] = text
	}
	return all
}

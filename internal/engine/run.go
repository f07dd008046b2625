package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/relayops/relayops/internal/crashpoint"
)

// Run runs one attempt. It returns when no step of it runs any more.
//
// An error means that nothing may be concluded about the attempt: ctx ended (the error wraps its cause), or the
// journal refused a record. When ctx ended, Result.Pending holds the steps that finished without a record, and those
// that were interrupted, for a caller that still holds the lease.
//
// A failure stops the attempt: steps that run are finished, so that what they did is recorded, and no other starts.
// Closing Runtime.Draining does the same without a failure.
func (g *Graph) Run(ctx context.Context, execution Execution, runtime Runtime) (Result, error) {
	if runtime.Now == nil {
		runtime.Now = time.Now
	}
	runtime.Parallelism = max(runtime.Parallelism, 1)
	a := &attempt{graph: g, execution: &execution, runtime: runtime, records: make([]any, len(g.nodes))}
	recorded, unfit := a.resume()
	if unfit == nil {
		a.data, unfit = newData(a.execution)
	}
	if unfit != nil {
		return Result{Outcome: Failed, Failure: unfit}, nil //nolint:nilerr // The attempt failed, the run did not.
	}
	return a.run(ctx, recorded)
}

// attempt is the state of one Run. Only its own goroutine touches it; steps run in goroutines of their own and send
// what became of them to finished.
type attempt struct {
	graph     *Graph
	execution *Execution
	runtime   Runtime
	plan      *plan
	data      *data
	// records are what later nodes read of each settled node that some node reads.
	records  []any
	queue    []int
	running  int
	finished chan finished
	pending  []Step
	failures []nodeFailure
	drained  bool
}

// resume reads the recorded steps: which branch each took, and what later nodes read of it.
func (a *attempt) resume() (map[int]string, *Failure) {
	recorded := make(map[int]string, len(a.execution.Completed))
	for i := range a.execution.Completed {
		step := &a.execution.Completed[i]
		if !settles(step) {
			continue
		}
		node, known := a.graph.index[step.NodeID]
		if !known || !slices.Contains(a.graph.nodes[node].branches, step.Branch) {
			err := fmt.Errorf("recorded step %s took branch %q, which this graph lacks", step.NodeID, step.Branch)
			return nil, Permanent(CodeRevisionMissing, err)
		}
		recorded[node] = step.Branch
		if failure := a.keep(node, step); failure != nil {
			return nil, failure
		}
	}
	return recorded, nil
}

// settles reports whether a recorded step is over for good: see [Execution].Completed.
func settles(step *Step) bool {
	switch step.Outcome {
	case StepSucceeded, StepContinued:
		return true
	case StepFailed:
		return step.Branch == BranchError
	default:
		return false
	}
}

func (a *attempt) run(ctx context.Context, recorded map[int]string) (Result, error) {
	stepsCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.finished = make(chan finished, a.runtime.Parallelism)
	var first decision
	a.plan, first = newPlan(a.graph, recorded)
	a.follow(first)
	for {
		a.start(stepsCtx)
		if a.running == 0 {
			break
		}
		for _, f := range a.wait() {
			a.settle(ctx, f)
		}
		if ctx.Err() == nil && a.mustCommit() {
			if err := a.commit(ctx); err != nil {
				cancel(err)
				for a.running > 0 {
					a.wait()
				}
				return Result{}, err
			}
		}
	}
	if ctx.Err() != nil && a.plan.left > 0 {
		return Result{Pending: a.pending}, fmt.Errorf("execution %s: %w", a.execution.ID, context.Cause(ctx))
	}
	return a.result(), nil
}

func (a *attempt) result() Result {
	if a.anyPendingEffect() {
		crashpoint.Here(crashpoint.AfterStepBeforeCommit)
	}
	result := Result{Outcome: Succeeded, Pending: a.pending}
	switch {
	case len(a.failures) > 0:
		result.Outcome, result.Failure = Failed, worst(a.failures)
	case a.plan.left > 0:
		result.Outcome = HandedBack
	}
	return result
}

// start runs queued nodes as long as there are free places and nothing forbids it.
func (a *attempt) start(ctx context.Context) {
	for len(a.queue) > 0 && a.running < a.runtime.Parallelism && a.mayStart(ctx) {
		node := a.queue[0]
		a.queue = a.queue[1:]
		call := &Call{
			Execution: a.execution, NodeID: a.graph.nodes[node].ID, Data: a.data.forNode(a, node),
			Services: a.runtime.Services,
		}
		a.running++
		go func() { a.finished <- a.step(ctx, node, call) }()
	}
}

func (a *attempt) mayStart(ctx context.Context) bool {
	return len(a.failures) == 0 && ctx.Err() == nil && !a.draining()
}

func (a *attempt) draining() bool {
	select {
	case <-a.runtime.Draining: // A nil channel never gives anything.
		a.drained = true
	default:
	}
	return a.drained
}

// wait gives the steps that finished, at least one.
func (a *attempt) wait() []finished {
	all := []finished{<-a.finished}
	for {
		select {
		case f := <-a.finished:
			all = append(all, f)
		default:
			a.running -= len(all)
			return all
		}
	}
}

// settle records a finished step as pending, and follows what the plan makes of it.
func (a *attempt) settle(ctx context.Context, f finished) {
	v := &a.graph.nodes[f.node]
	if f.failure != nil {
		f.failure.NodeID = v.ID
		f.step.Code, f.step.HTTPStatus = f.failure.Code, f.failure.HTTPStatus
		switch {
		case ctx.Err() != nil:
			f.step.Outcome, f.step.Code, f.step.HTTPStatus = StepInterrupted, "", 0
			a.pending = append(a.pending, f.step)
			return
		case a.final(f.failure) && v.OnError == OnErrorContinue:
			f.step.Outcome, f.step.Branch = StepContinued, BranchSuccess
		case a.final(f.failure) && v.hasErrorEdge:
			f.step.Outcome, f.step.Branch = StepFailed, BranchError
		default:
			f.step.Outcome = StepFailed
			a.pending = append(a.pending, f.step)
			a.failures = append(a.failures, nodeFailure{f.node, f.failure})
			return
		}
	}
	if failure := a.keep(f.node, &f.step); failure != nil {
		a.failures = append(a.failures, nodeFailure{f.node, failure})
	}
	a.pending = append(a.pending, f.step)
	a.follow(a.plan.settle(f.node, f.step.Branch))
}

// final reports whether onError decides about a failure. A retry is not final while attempts are left; a cancel ends
// the execution whatever onError says.
func (a *attempt) final(failure *Failure) bool {
	switch failure.Class {
	case ClassRetry:
		return a.execution.Attempt >= a.execution.MaxAttempts
	case ClassCancel:
		return false
	default:
		return true
	}
}

// follow queues the nodes to run, and records those that are skipped.
func (a *attempt) follow(d decision) {
	a.queue = append(a.queue, d.run...)
	for _, node := range d.skip {
		v := &a.graph.nodes[node]
		now := a.runtime.Now()
		step := Step{NodeID: v.ID, NodeType: v.Type, Outcome: StepSkipped, StartedAt: now, FinishedAt: now}
		if v.read {
			a.records[node] = recordOf(&step, nil)
		}
		a.pending = append(a.pending, step)
	}
}

// keep holds what later nodes read of a settled step.
func (a *attempt) keep(node int, step *Step) *Failure {
	if !a.graph.nodes[node].read {
		return nil
	}
	var output any
	if len(step.Output) > 0 {
		var err error
		if output, err = decodeJSON(step.Output); err != nil {
			return Permanent(CodeSchemaInvalid, fmt.Errorf("output of recorded step %s: %w", step.NodeID, err))
		}
	}
	a.records[node] = recordOf(step, output)
	return nil
}

// mustCommit reports whether pending steps have to be made durable now. The steps of an attempt that is over are
// left to the transaction that ends it.
func (a *attempt) mustCommit() bool {
	over := a.running == 0 && (len(a.queue) == 0 || len(a.failures) > 0 || a.draining())
	return a.runtime.Journal != nil && !over && a.anyPendingEffect()
}

func (a *attempt) anyPendingEffect() bool {
	return slices.ContainsFunc(a.pending, func(s Step) bool {
		return s.Outcome != StepSkipped && a.graph.nodes[a.graph.index[s.NodeID]].kind.Effect() != Pure
	})
}

func (a *attempt) commit(ctx context.Context) error {
	crashpoint.Here(crashpoint.AfterStepBeforeCommit)
	if err := a.runtime.Journal.Commit(ctx, a.pending); err != nil {
		return fmt.Errorf("execution %s: record %d steps: %w", a.execution.ID, len(a.pending), err)
	}
	a.pending = nil
	return nil
}

type nodeFailure struct {
	node int
	*Failure
}

// worst picks the failure that ends the attempt: of the gravest class, and of those the one of the earliest node. Of
// retries, the longest time that anyone asked to wait counts.
func worst(failures []nodeFailure) *Failure {
	gravity := []Class{ClassRetry, ClassDeadLetter, ClassCancel}
	picked := slices.MaxFunc(failures, func(x, y nodeFailure) int {
		return cmp.Or(slices.Index(gravity, x.Class)-slices.Index(gravity, y.Class), y.node-x.node)
	})
	result := *picked.Failure
	if result.Class == ClassRetry {
		for _, f := range failures {
			result.RetryAfter = max(result.RetryAfter, f.RetryAfter)
		}
	}
	if result.Class == ClassCancel {
		result.Code = CodeCancelledByPipeline
	}
	return &result
}

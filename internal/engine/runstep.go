package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// finished is what became of one step: its record, without an outcome where it failed.
type finished struct {
	node    int
	step    Step
	failure *Failure
}

// errStepTimeout is the cause of a step's context when its time is up.
var errStepTimeout = errors.New("step timeout")

// step runs one node. It touches nothing of the attempt that changes.
func (a *attempt) step(ctx context.Context, node int, call *Call) finished {
	v := &a.graph.nodes[node]
	if limit := v.limit(a.runtime.StepTimeout); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errStepTimeout)
		defer cancel()
	}
	step := Step{NodeID: v.ID, NodeType: v.Type, StartedAt: a.runtime.Now()}
	call.Now = step.StartedAt
	output, err := runSafely(ctx, v.runner, call)
	if err == nil {
		step.Branch, err = branchTaken(v, output.Branch)
	}
	if err == nil && output.Value != nil {
		if step.Output, err = MarshalJSON(output.Value, MaxOutputBytes); errors.Is(err, ErrTooLarge) {
			err = Permanent(CodeOutputTooLarge, err)
		}
	}
	step.FinishedAt = a.runtime.Now()
	if err != nil {
		step.Branch, step.Output = noBranch, nil
		return finished{node: node, step: step, failure: v.classify(ctx, err)}
	}
	step.Outcome, step.HTTPStatus = StepSucceeded, output.HTTPStatus
	step.Tags, step.Events = stampTags(output.Tags, step.FinishedAt), output.Events
	return finished{node: node, step: step}
}

// runSafely makes a failure of a panic: one broken node never stops a worker.
func runSafely(ctx context.Context, runner Runner, call *Call) (output Output, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			err = Permanent(CodeNodePanicked, fmt.Errorf("panic: %v\n%s", recovered, debug.Stack()))
		}
	}()
	return runner.Run(ctx, call)
}

func branchTaken(v *vertex, branch string) (string, error) {
	if branch == "" {
		branch = BranchSuccess
	}
	if branch == BranchError || !slices.Contains(v.branches, branch) {
		return "", Permanent(CodePermanentError, fmt.Errorf("%s took the unknown branch %q", v.Type, branch))
	}
	return branch, nil
}

func stampTags(tags []StatusTag, at time.Time) []StatusTag {
	for i := range tags {
		if tags[i].At.IsZero() {
			tags[i].At = at
		}
	}
	return tags
}

// classify makes a failure of a step's error, and gives it the class that the node's rules say.
func (v *vertex) classify(ctx context.Context, err error) *Failure {
	failure := &Failure{Class: ClassDeadLetter, Code: CodePermanentError, Err: err}
	var typed *Failure
	switch {
	case errors.As(err, &typed):
		copied := *typed
		failure = &copied
	case errors.Is(context.Cause(ctx), errStepTimeout):
		failure.Class, failure.Code = ClassRetry, CodeTimeout
	}
	if failure.Code == "" {
		failure.Code = CodePermanentError
	}
	if !slices.Contains([]Class{ClassRetry, ClassDeadLetter, ClassCancel}, failure.Class) {
		failure.Class = ClassDeadLetter
	}
	for _, rule := range v.Classify {
		if rule.matches(failure) {
			failure.Class = rule.As
			break
		}
	}
	return failure
}

func (r ClassRule) matches(f *Failure) bool {
	if r.Code != "" && r.Code != f.Code {
		return false
	}
	if r.HTTPStatus == "" {
		return true
	}
	status := fmt.Sprintf("%03d", f.HTTPStatus)
	return r.HTTPStatus == status || r.HTTPStatus[1:] == "xx" && r.HTTPStatus[0] == status[0]
}

package engine

import (
	"context"
	"errors"
)

// Run runs one attempt. It returns when no step of it runs any more.
//
// An error means that nothing may be concluded about the attempt: ctx ended (the error is its cause), or the journal
// refused a record. Steps that finished or were interrupted by the end of ctx are then in Result.Pending, for a
// caller that still holds the lease.
func (g *Graph) Run(ctx context.Context, execution Execution, runtime Runtime) (Result, error) {
	return Result{}, errors.New("engine: not built yet")
}

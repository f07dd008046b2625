// Package prepipeline runs a pre-processing pipeline, such as order.pre, inside the application: synchronously, before
// the order is stored, with the same engine and the same JSON as the pipelines that workers run. The events that its
// emit-event nodes give are written through the application's own transaction, so they are published if the order is.
//
//	pipeline, err := prepipeline.Compile("order.pre", definition)    // once
//
//	placed, err := event.New("acme", "OrderPlaced", order)           // per request; only read, never stored
//	result, err := pipeline.Evaluate(ctx, placed)                    // calls out, holds no transaction
//	…                                                                // BEGIN; the order; its status tags
//	err = outbox.Write(ctx, tx, result.Events...)                    // COMMIT
//
// [Pipeline.Run] does both in one call, inside a transaction that is open while the pipeline runs: right for pipelines
// that call nobody, a connection held for a caller's time-out otherwise.
//
// What differs from a worker:
//
//   - one attempt: a failure that a worker would try again is the caller's to judge (FailureError, class "retry")
//   - a failed pipeline gives no events
//   - publish nodes are refused: their message would be out although the transaction may still roll back. An
//     emit-event node publishes after the commit.
//   - http-request nodes work, by the same rules: public addresses only unless [WithAllowedCIDRs], no redirects, and
//     an Idempotency-Key made of organisation, pipeline, event id and node. The context's deadline bounds them too.
package prepipeline

// Package tracing gives the W3C Trace Context that a step sends on: https://www.w3.org/TR/trace-context/
package tracing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/engine"
)

// Headers are traceparent, and tracestate where there is one, by their lower-case names. The trace is that of the
// span in ctx, else that of the event, else one made of the execution's id. Without a span in ctx the parent id is
// made of execution, node and attempt, so that each call is a parent of its own.
func Headers(ctx context.Context, call *engine.Call) map[string]string {
	carrier := propagation.MapCarrier{}
	if trace.SpanContextFromContext(ctx).IsValid() {
		propagation.TraceContext{}.Inject(ctx, carrier)
		return carrier
	}
	incoming := call.Execution.Event.Headers
	ofEvent := propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{
		event.HeaderTraceParent: incoming[event.HeaderTraceParent],
		event.HeaderTraceState:  incoming[event.HeaderTraceState],
	})
	parent := trace.SpanContextFromContext(ofEvent)
	if !parent.IsValid() {
		parent = trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(call.Execution.ID)})
	}
	carrier[event.HeaderTraceParent] = strings.Join([]string{
		"00", parent.TraceID().String(), spanID(call), parent.TraceFlags().String(),
	}, "-")
	if state := parent.TraceState().String(); state != "" {
		carrier[event.HeaderTraceState] = state
	}
	return carrier
}

func spanID(call *engine.Call) string {
	sum := sha256.Sum256([]byte(call.IdempotencyKey() + "/" + strconv.Itoa(call.Execution.Attempt)))
	sum[0] |= 1 // A parent id of zeros is not valid.
	return hex.EncodeToString(sum[:8])
}

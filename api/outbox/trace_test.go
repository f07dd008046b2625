package outbox_test

import (
	"context"
	"maps"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/trace"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/testenv"
)

const (
	traceParent = "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01"
	traceState  = "vendor=a,other=b"
)

func traced(t *testing.T) context.Context {
	t.Helper()
	state, err := trace.ParseTraceState(traceState)
	if err != nil {
		t.Fatal(err)
	}
	return trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID:    trace.TraceID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		SpanID:     trace.SpanID{1, 2, 3, 4, 5, 6, 7, 8},
		TraceFlags: trace.FlagsSampled, TraceState: state,
	}))
}

func TestTraceContextTravelsWithTheEvent(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	full := make(map[string]string)
	for i := range event.MaxHeaders {
		full["h"+strconv.Itoa(i)] = "x"
	}
	for name, c := range map[string]struct {
		ctx           context.Context
		headers, want map[string]string
	}{
		"of the context": {traced(t), nil, map[string]string{"traceparent": traceParent, "tracestate": traceState}},
		"beside others": {
			traced(t), map[string]string{"a": "b"},
			map[string]string{"a": "b", "traceparent": traceParent, "tracestate": traceState},
		},
		"of the event": {traced(t), map[string]string{"traceparent": "mine"}, map[string]string{"traceparent": "mine"}},
		"a state of nothing": {
			traced(t), map[string]string{"tracestate": "old=1"},
			map[string]string{"traceparent": traceParent, "tracestate": traceState},
		},
		"no span": {t.Context(), nil, map[string]string{}},
		"no room": {traced(t), full, full},
	} {
		e := confirmed(t, "acme", `1`)
		e.Headers = c.headers
		before := maps.Clone(c.headers)
		err := pgx.BeginFunc(c.ctx, pool, func(tx pgx.Tx) error { return outbox.Write(c.ctx, tx, e) })
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, _ := stored(t, pool, outbox.Table{}, e.ID, e.OrgID)
		if !maps.Equal(got.Headers, c.want) {
			t.Errorf("%s: found %v, want %v", name, got.Headers, c.want)
		}
		if !maps.Equal(c.headers, before) {
			t.Errorf("%s: the caller's headers were changed to %v", name, c.headers)
		}
	}
}

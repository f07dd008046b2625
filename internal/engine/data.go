package engine

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// The fields that placeholders and expressions can read below each root that RelayOps makes.
var (
	EventFields = []string{
		"id", "orgId", "eventType", "eventVersion", "aggregateType", "aggregateId", "correlationId", "causationId",
		"occurredAt", "headers", "payload",
	}
	StepFields    = []string{"output", "outcome", "branch", "code", "httpStatus"}
	ContextFields = []string{
		"pipeline", "executionId", "nodeId", "idempotencyKey", "operationVersion", "attempt", "maxAttempts",
	}
)

// data is what steps read, shared by all of an attempt: it is never changed after it is made.
type data struct {
	event   map[string]any
	payload any
}

func newData(e *Execution) (*data, *Failure) {
	var payload any
	if len(e.Event.Payload) > 0 {
		var err error
		if payload, err = decodeJSON(e.Event.Payload); err != nil {
			return nil, Permanent(CodeSchemaInvalid, fmt.Errorf("payload of event %s: %w", e.Event.ID, err))
		}
	}
	headers := make(map[string]any, len(e.Event.Headers))
	for key, value := range e.Event.Headers {
		headers[key] = value
	}
	return &data{payload: payload, event: map[string]any{
		"id": e.Event.ID.String(), "orgId": e.Event.OrgID, "eventType": e.Event.EventType,
		"eventVersion": number(int(e.Event.EventVersion)), "aggregateType": e.Event.AggregateType,
		"aggregateId": e.Event.AggregateID, "correlationId": e.Event.CorrelationID, "causationId": e.Event.CausationID,
		"occurredAt": e.Event.OccurredAt.UTC().Format(time.RFC3339Nano), "headers": headers, "payload": payload,
	}}, nil
}

func (d *data) forNode(a *attempt, node int) map[string]any {
	v := &a.graph.nodes[node]
	steps := make(map[string]any)
	for _, before := range v.ancestors {
		if record := a.records[before]; record != nil {
			steps[a.graph.nodes[before].ID] = record
		}
	}
	e := a.execution
	return map[string]any{
		"event": d.event, "payload": d.payload, "steps": steps,
		"context": map[string]any{
			"pipeline": e.PipelineKey, "executionId": e.ID.String(), "nodeId": v.ID,
			"idempotencyKey":   e.IdempotencyKey(v.ID),
			"operationVersion": number(int(e.OperationVersion)),
			"attempt":          number(e.Attempt), "maxAttempts": number(e.MaxAttempts),
		},
	}
}

func recordOf(step *Step, output any) map[string]any {
	return map[string]any{
		"outcome": string(step.Outcome), "branch": step.Branch, "code": string(step.Code),
		"httpStatus": number(step.HTTPStatus), "output": output,
	}
}

func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }

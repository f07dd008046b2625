package prepipeline_test

import (
	"context"
	"fmt"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/prepipeline"
)

// Orders above a limit emit an event of their own, before the order is stored.
func ExamplePipeline_Evaluate() {
	pipeline, err := prepipeline.Compile("order.pre", []byte(`{
	  "nodes": [
	    {"id": "start", "type": "start"},
	    {"id": "isLarge", "type": "condition", "config": {"expression": "payload.total > 1000.0"}},
	    {"id": "review", "type": "emit-event",
	     "config": {"eventType": "ReviewRequested", "payload": {"number": "{{orderNumber}}"}}},
	    {"id": "tag", "type": "set-status",
	     "config": {"statusTag": "checked", "name": "Checked", "phase": "order.pre"}}],
	  "edges": [
	    {"from": "start", "to": "isLarge"},
	    {"from": "isLarge", "to": "review", "branch": "true"},
	    {"from": "isLarge", "to": "tag", "branch": "false"},
	    {"from": "review", "to": "tag"}]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	placed, err := event.New("acme", "OrderPlaced", map[string]any{"orderNumber": "A-1", "total": 1250.50})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := pipeline.Evaluate(context.Background(), placed)
	if err != nil {
		fmt.Println(err)
		return
	}
	// Next: BEGIN, store the order, outbox.Write(ctx, tx, result.Events...), COMMIT.
	fmt.Println(result.Tags[0].Tag, result.Events[0].EventType, string(result.Events[0].Payload))
	// Output: checked ReviewRequested {"number":"A-1"}
}

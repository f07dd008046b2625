package process_test

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// checkLedger: exactly one execution for each order, terminal, with its fate.
func (w *world) checkLedger(ctx context.Context, committed []order, fateOf func(order) fate) error {
	type execution struct {
		state   string
		attempt int
		tags    int
	}
	found := make(map[string][]execution)
	rows, err := w.pool.Query(ctx, `SELECT org_id, event_id::text, state, attempt, jsonb_array_length(status_tags)
		FROM relayops.pipeline_executions`)
	if err != nil {
		return err
	}
	var org, id string
	var e execution
	if _, err := pgx.ForEachRow(rows, []any{&org, &id, &e.state, &e.attempt, &e.tags}, func() error {
		found[eventKey(org, id)] = append(found[eventKey(org, id)], e)
		return nil
	}); err != nil {
		return err
	}
	var wrong faults
	for _, o := range committed {
		wanted := fateOf(o)
		all := found[o.key()]
		delete(found, o.key())
		tags := 0
		if wanted.state == "SUCCEEDED" {
			tags = 1
		}
		if len(all) != 1 || all[0].state != wanted.state || all[0].tags != tags ||
			wanted.attempt != 0 && all[0].attempt != wanted.attempt {
			wrong.add("order %s: executions (state, attempt, tags) %v, wanted one of %+v with %d tags",
				o.Number, all, wanted, tags)
		}
	}
	for key := range found {
		wrong.add("an execution of event %s, which nobody committed", key)
	}
	return wrong.err()
}

// checkSteps: every node of an execution has exactly one success where the order succeeded.
func (w *world) checkSteps(ctx context.Context, committed []order, fateOf func(order) fate) error {
	rows, err := w.pool.Query(ctx, `SELECT e.org_id, e.event_id::text, s.node_id FROM relayops.step_executions s
		JOIN relayops.pipeline_executions e USING (execution_id) WHERE s.outcome = 'SUCCEEDED'`)
	if err != nil {
		return err
	}
	steps := make(map[string][]string)
	var org, id, node string
	if _, err := pgx.ForEachRow(rows, []any{&org, &id, &node}, func() error {
		steps[eventKey(org, id)] = append(steps[eventKey(org, id)], node)
		return nil
	}); err != nil {
		return err
	}
	var wrong faults
	for _, o := range committed {
		wanted := map[string][]string{
			"SUCCEEDED": {"announce", "notify", "ok", "start"}, "DEAD_LETTERED": {"start"}, "CANCELLED": nil,
		}[fateOf(o).state]
		if slices.Sort(steps[o.key()]); !slices.Equal(steps[o.key()], wanted) {
			wrong.add("order %s: steps that succeeded %v, wanted %v", o.Number, steps[o.key()], wanted)
		}
	}
	return wrong.err()
}

// checkDeadLetters: one for each dead order, with its code, and no other.
func (w *world) checkDeadLetters(ctx context.Context, committed []order, fateOf func(order) fate) error {
	rows, err := w.pool.Query(ctx, `SELECT org_id, coalesce(event_id::text, 'no event'), code
		FROM relayops.dead_letters`)
	if err != nil {
		return err
	}
	found := make(map[string][]string)
	var org, id, code string
	if _, err := pgx.ForEachRow(rows, []any{&org, &id, &code}, func() error {
		found[eventKey(org, id)] = append(found[eventKey(org, id)], code)
		return nil
	}); err != nil {
		return err
	}
	var wrong faults
	for _, o := range committed {
		var wanted []string
		if fate := fateOf(o); fate.code != "" {
			wanted = []string{fate.code}
		}
		if codes := found[o.key()]; !slices.Equal(codes, wanted) {
			wrong.add("order %s: dead letters %v, wanted %v", o.Number, codes, wanted)
		}
		delete(found, o.key())
	}
	for key, codes := range found {
		wrong.add("dead letters %v of %s, which nobody committed", codes, key)
	}
	return wrong.err()
}

// checkEmitted: one OrderIntegrated in the outbox for each order that succeeded, told by its payload, none for others.
func (w *world) checkEmitted(ctx context.Context, committed []order, fateOf func(order) fate) error {
	rows, err := w.pool.Query(ctx, `SELECT org_id, payload->>'number', count(*) FROM relayops.outbox_events
		WHERE event_type = 'OrderIntegrated' GROUP BY 1, 2`)
	if err != nil {
		return err
	}
	found := make(map[string]int)
	var org, number string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&org, &number, &n}, func() error {
		found[org+"/"+number] = n
		return nil
	}); err != nil {
		return err
	}
	var wrong faults
	for _, o := range committed {
		wanted := 0
		if fateOf(o).state == "SUCCEEDED" {
			wanted = 1
		}
		if got := found[o.org+"/"+o.Number]; got != wanted {
			wrong.add("order %s: %d emitted events, wanted %d", o.Number, got, wanted)
		}
		delete(found, o.org+"/"+o.Number)
	}
	for name := range found {
		wrong.add("an emitted event of %s, which nobody committed", name)
	}
	return wrong.err()
}

package process_test

import "context"

// checkSink: the sink saw each order, as often as it may, always under one key that no other order has.
func (w *world) checkSink(_ context.Context, committed []order, fateOf func(order) fate) error {
	seen := w.sink.seen()
	owner := make(map[string]string)
	var wrong faults
	for _, o := range committed {
		requests := seen[o.Number]
		delete(seen, o.Number)
		wanted := fateOf(o).requests
		if len(requests) == 0 && wanted != none || wanted != 0 && len(requests) != max(wanted, 0) {
			wrong.add("order %s: the sink saw %d requests, wanted %d", o.Number, len(requests), wanted)
		}
		if len(requests) == 0 {
			continue
		}
		for _, r := range requests {
			if r.key == "" || r.key != requests[0].key {
				wrong.add("order %s: Idempotency-Key %q after %q", o.Number, r.key, requests[0].key)
			}
		}
		if other, taken := owner[requests[0].key]; taken {
			wrong.add("orders %s and %s have the same Idempotency-Key", o.Number, other)
		}
		owner[requests[0].key] = o.Number
	}
	for number := range seen {
		wrong.add("the sink saw order %s, which nobody committed", number)
	}
	return wrong.err()
}

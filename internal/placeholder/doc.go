// Package placeholder fills {{path}} in the strings of a JSON document.
//
// A string that is one placeholder and nothing else becomes the value itself, with its type: "{{order.total}}" a
// number, "{{items}}" a list. A placeholder with text around it is formatted: a string as it is, everything else as
// compact JSON. What a placeholder brings in is never read for placeholders again.
//
// # Paths
//
//	order.totalAmount        a field of the event's payload
//	payload.order            the same, said explicitly: for payload fields called event, steps, context or payload
//	items[0].sku, items.0    an element of a list, from 0
//	order["total.amount"]    a field whose name a plain path cannot hold, as a JSON string
//	event.id                 the envelope: see engine.EventFields
//	steps.notify.output.id   the record of a step that lies before this one: see engine.StepFields
//	context.attempt          the execution: see engine.ContextFields
//	order.coupon?            optional: null where it is missing, and empty in a text where it is missing or null
//
// A path that leads nowhere is the failure placeholder_unset, unless it is optional.
//
// # A literal {{
//
// {{{{ stands for {{. A }} outside a placeholder stands for itself. [Escape] writes any text so that it stays as it
// is.
package placeholder

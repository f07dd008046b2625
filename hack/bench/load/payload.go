package load

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

// Orgs is how many organisations the events belong to, bench-0 to bench-9.
const Orgs = 10

// EventType of every event.
const EventType = "OrderConfirmed"

// Org of the n-th event.
func Org(n int) string { return fmt.Sprintf("bench-%d", n%Orgs) }

// Payload is a JSON document of the given size in bytes (at least 120), as jsonb prints it, so that the size in the
// outbox and on the wire is the same. Its filling does not compress.
func Payload(n, size int, random *rand.Rand) json.RawMessage {
	const start = `{"amount": %d.5, "orderId": "order-%d", "customer": {"name": "Ada", "country": "GB"}, "filling": "`
	head := fmt.Sprintf(start, n%1000, n)
	const tail = `"}`
	filling := make([]byte, max(0, (size-len(head)-len(tail)+1)/2))
	for i := range filling {
		filling[i] = byte(random.Uint32())
	}
	text := hex.EncodeToString(filling)
	return json.RawMessage(head + text[:max(0, size-len(head)-len(tail))] + tail)
}

package event_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/relayops/relayops/api/event"
)

// anyText draws text that an envelope allows: any UTF-8 without control characters, minimum to maximum bytes, with a
// liking for what subjects and headers give a meaning to.
func anyText(minimum, maximum int) *rapid.Generator[string] {
	character := rapid.OneOf(
		rapid.SampledFrom([]rune(" .*>/\\%:\"'=+é漢🧾￿\u0085")),
		rapid.RuneFrom([]rune("abcXYZ019-_")),
		rapid.Rune().Filter(func(r rune) bool { return r >= 0x20 && r != 0x7f && utf8.ValidRune(r) }),
	)
	return rapid.StringOfN(character, minimum, -1, maximum)
}

func anyType() *rapid.Generator[string] {
	return rapid.StringMatching(`[A-Za-z][A-Za-z0-9._-]{0,127}`)
}

func anyHeaders() *rapid.Generator[map[string]string] {
	key := rapid.OneOf(
		rapid.SampledFrom([]string{"traceparent", "tracestate", "baggage", "-", "a.b"}),
		rapid.StringMatching(`[a-z0-9._-]{1,64}`))
	return rapid.MapOfN(key, anyText(0, 100), -1, event.MaxHeaders)
}

func anyEnvelope() *rapid.Generator[event.Envelope] {
	return rapid.Custom(func(t *rapid.T) event.Envelope {
		headers := anyHeaders().Draw(t, "headers")
		if len(headers) == 0 {
			headers = nil
		}
		return event.Envelope{
			ID:            uuid.UUID([]byte(rapid.StringOfN(rapid.RuneFrom([]rune("abcdefgh")), 16, 16, 16).Draw(t, "id"))),
			OrgID:         anyText(1, event.MaxTokenBytes).Draw(t, "orgId"),
			EventType:     anyType().Draw(t, "eventType"),
			EventVersion:  rapid.Int32Min(1).Draw(t, "eventVersion"),
			AggregateType: anyText(0, event.MaxTextBytes).Draw(t, "aggregateType"),
			AggregateID:   anyText(0, event.MaxTextBytes).Draw(t, "aggregateId"),
			CorrelationID: anyText(0, event.MaxTextBytes).Draw(t, "correlationId"),
			CausationID:   anyText(0, event.MaxTextBytes).Draw(t, "causationId"),
			Payload:       json.RawMessage(anyJSON().Draw(t, "payload")),
			OccurredAt:    time.UnixMicro(rapid.Int64Range(-1e15, 1e16).Draw(t, "occurredAt")).UTC(),
			Headers:       headers,
		}
	})
}

func anyDelivery() *rapid.Generator[event.Delivery] {
	return rapid.Custom(func(t *rapid.T) event.Delivery {
		d := event.Delivery{
			Envelope:         anyEnvelope().Draw(t, "envelope"),
			OperationVersion: rapid.Int32Min(1).Draw(t, "operationVersion"),
			Position:         rapid.Int64Min(0).Draw(t, "position"),
			PipelineKey:      anyText(0, 100).Draw(t, "pipelineKey"),
			PayloadRef:       rapid.SampledFrom([]string{"", event.PayloadRefOutbox}).Draw(t, "payloadRef"),
		}
		d.PayloadSHA256 = event.PayloadHash(d.Payload)
		return d
	})
}

// anyJSON draws the text of a JSON document, with white space, escapes and numbers of every form.
func anyJSON() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string { return drawJSON(t, 3) })
}

func drawJSON(t *rapid.T, depth int) string {
	space := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "space") }
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind %= 3
	}
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "literal")
	case 1:
		return anyNumber().Draw(t, "number")
	case 2:
		return drawString(t)
	case 3:
		items := make([]string, rapid.IntRange(0, 4).Draw(t, "items"))
		for i := range items {
			items[i] = space() + drawJSON(t, depth-1) + space()
		}
		return "[" + strings.Join(items, ",") + "]"
	default:
		members := make([]string, rapid.IntRange(0, 4).Draw(t, "members"))
		for i := range members {
			// The index keeps the names apart: a jsonb would keep one of two.
			name := fmt.Sprintf(`"%d%s`, i, drawString(t)[1:])
			members[i] = space() + name + space() + ":" + space() + drawJSON(t, depth-1)
		}
		return "{" + strings.Join(members, ",") + space() + "}"
	}
}

func drawString(t *rapid.T) string {
	part := rapid.OneOf(
		rapid.SampledFrom([]string{
			`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u0001`, `\u0008`, `\u000b`, `\u001f`, `\u0022`, `\u005C`,
			`\u0041`, `\u00e9`, `\u07ff`, `\u0800`, `\uFFFF`, `\ud83d\ude00`, `\udbff\udfff`, `\\u0000`, "\x7f",
		}),
		rapid.Map(anyText(0, 8), func(s string) string {
			return strings.NewReplacer(`"`, "", `\`, "").Replace(s)
		}))
	return `"` + strings.Join(rapid.SliceOfN(part, 0, 6).Draw(t, "string"), "") + `"`
}

func anyNumber() *rapid.Generator[string] {
	return rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,12})?([eE][+-]?0{0,2}[0-9]{1,3})?`)
}

package event_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/relayops/relayops/api/event"
)

func valid() event.Envelope {
	return event.Envelope{
		ID: uuid.MustParse("0190b0a0-0000-7000-8000-000000000001"), OrgID: "acme", EventType: "OrderConfirmed",
		EventVersion: 1, Payload: json.RawMessage(`{"total":1}`), OccurredAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func TestValidateNamesTheField(t *testing.T) {
	manyHeaders := make(map[string]string)
	for i := range event.MaxHeaders + 1 {
		manyHeaders[fmt.Sprint("h", i)] = ""
	}
	for name, c := range map[string]struct {
		change func(e *event.Envelope)
		field  string
	}{
		"nil id":              {func(e *event.Envelope) { e.ID = uuid.Nil }, "id"},
		"no org":              {func(e *event.Envelope) { e.OrgID = "" }, "orgId"},
		"long org":            {func(e *event.Envelope) { e.OrgID = strings.Repeat("é", 65) }, "orgId"},
		"org with a line end": {func(e *event.Envelope) { e.OrgID = "a\nb" }, "orgId"},
		"org not UTF-8":       {func(e *event.Envelope) { e.OrgID = "a\xff" }, "orgId"},
		"no type":             {func(e *event.Envelope) { e.EventType = "" }, "eventType"},
		"type with a space":   {func(e *event.Envelope) { e.EventType = "Order Confirmed" }, "eventType"},
		"type with a star":    {func(e *event.Envelope) { e.EventType = "Order*" }, "eventType"},
		"type with a digit":   {func(e *event.Envelope) { e.EventType = "1st" }, "eventType"},
		"long type":           {func(e *event.Envelope) { e.EventType = strings.Repeat("a", 129) }, "eventType"},
		"version 0":           {func(e *event.Envelope) { e.EventVersion = 0 }, "eventVersion"},
		"long aggregate type": {func(e *event.Envelope) { e.AggregateType = strings.Repeat("a", 257) }, "aggregateType"},
		"bad aggregate id":    {func(e *event.Envelope) { e.AggregateID = "\x7f" }, "aggregateId"},
		"bad correlation":     {func(e *event.Envelope) { e.CorrelationID = "\xc3" }, "correlationId"},
		"bad causation":       {func(e *event.Envelope) { e.CausationID = "\x00" }, "causationId"},
		"no time":             {func(e *event.Envelope) { e.OccurredAt = time.Time{} }, "occurredAt"},
		"the year 10000":      {func(e *event.Envelope) { e.OccurredAt = newYear(10000) }, "occurredAt"},
		"the year 0":          {func(e *event.Envelope) { e.OccurredAt = newYear(0) }, "occurredAt"},
		"no payload":          {func(e *event.Envelope) { e.Payload = nil }, "payload"},
		"payload not JSON":    {func(e *event.Envelope) { e.Payload = json.RawMessage(`{"a":`) }, "payload"},
		"two documents":       {func(e *event.Envelope) { e.Payload = json.RawMessage(`{} {}`) }, "payload"},
		"payload not UTF-8":   {func(e *event.Envelope) { e.Payload = json.RawMessage("\"\xff\"") }, "payload"},
		"payload with a NUL":  {func(e *event.Envelope) { e.Payload = json.RawMessage(`"\u0000"`) }, "payload"},
		"payload too large":   {func(e *event.Envelope) { e.Payload = text(event.MaxPayloadBytes + 1) }, "payload"},
		"payload that grows": {func(e *event.Envelope) {
			e.Payload = json.RawMessage("[1" + strings.Repeat(",1", event.MaxPayloadBytes/3) + "]")
		}, "payload"},
		"numbers that grow": {func(e *event.Envelope) {
			e.Payload = json.RawMessage("[1" + strings.Repeat(",1e131071", 64) + "]")
		}, "payload"},
		"many headers":      {func(e *event.Envelope) { e.Headers = manyHeaders }, "headers"},
		"large headers":     {func(e *event.Envelope) { e.Headers = oneHeader("a", strings.Repeat("x", 16<<10)) }, "headers"},
		"upper-case header": {func(e *event.Envelope) { e.Headers = oneHeader("Traceparent", "x") }, "headers"},
		"long header":       {func(e *event.Envelope) { e.Headers = oneHeader(strings.Repeat("k", 65), "x") }, "headers"},
		"header with a CR":  {func(e *event.Envelope) { e.Headers = oneHeader("k", "a\r\nb") }, "headers[k]"},
	} {
		t.Run(name, func(t *testing.T) {
			envelope := valid()
			c.change(&envelope)
			err := envelope.Validate()
			var invalid *event.ValidationError
			if !errors.As(err, &invalid) || !errors.Is(err, event.ErrInvalid) {
				t.Fatalf("found %v, want a ValidationError", err)
			}
			if len(invalid.Faults) != 1 || !invalid.Has(c.field) {
				t.Fatalf("found %v, want one fault, of %s", invalid.Faults, c.field)
			}
			if len(err.Error()) > 1000 {
				t.Fatalf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	err := (&event.Envelope{}).Validate()
	var invalid *event.ValidationError
	if !errors.As(err, &invalid) {
		t.Fatalf("found %v", err)
	}
	for _, field := range []string{"id", "orgId", "eventType", "eventVersion", "occurredAt", "payload"} {
		if !invalid.Has(field) {
			t.Errorf("%s is not among the faults: %v", field, err)
		}
	}
}

func TestValidateAcceptsTheLimits(t *testing.T) {
	for name, change := range map[string]func(e *event.Envelope){
		"as it is":         func(*event.Envelope) {},
		"null payload":     func(e *event.Envelope) { e.Payload = json.RawMessage(`null`) },
		"largest payload":  func(e *event.Envelope) { e.Payload = text(event.MaxPayloadBytes) },
		"longest org":      func(e *event.Envelope) { e.OrgID = strings.Repeat("é", 64) },
		"odd org":          func(e *event.Envelope) { e.OrgID = "a/b c.*>é" },
		"longest type":     func(e *event.Envelope) { e.EventType = strings.Repeat("a", 128) },
		"longest text":     func(e *event.Envelope) { e.AggregateID = strings.Repeat("a", 256) },
		"largest headers":  func(e *event.Envelope) { e.Headers = oneHeader("a", strings.Repeat("x", 16<<10-1)) },
		"the last instant": func(e *event.Envelope) { e.OccurredAt = newYear(10000).Add(-1) },
	} {
		envelope := valid()
		change(&envelope)
		if err := envelope.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidateAcceptsWhatTheGeneratorDraws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		envelope := anyEnvelope().Draw(t, "envelope")
		if err := envelope.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestNew(t *testing.T) {
	made, err := event.New("acme", "OrderConfirmed", map[string]int{"total": 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Validate(); err != nil {
		t.Fatal(err)
	}
	if made.ID.Version() != 7 || string(made.Payload) != `{"total":1}` {
		t.Fatalf("found %+v", made)
	}
	raw, err := event.New("acme", "OrderConfirmed", json.RawMessage(`{"a": 1}`))
	if err != nil || string(raw.Payload) != `{"a": 1}` {
		t.Fatalf("found %s, %v", raw.Payload, err)
	}
	var invalid *event.ValidationError
	if _, err := event.New("acme", "OrderConfirmed", func() {}); !errors.As(err, &invalid) || !invalid.Has("payload") {
		t.Fatalf("a function as payload: %v", err)
	}
}

func FuzzEnvelopeValidate(f *testing.F) {
	f.Add("acme", "OrderConfirmed", int32(1), "Order", "4711", "traceparent", "00-x", []byte(`{"a":[1e5,"\ud83d\ude00"]}`))
	f.Add("", "1", int32(0), "\xff", "\n", "K", "\r", []byte(`"\u0000"`))
	f.Add("a", "b", int32(1), "", "", "k", "", []byte(`[1e131072]`))
	f.Add("a", "b", int32(1), "", "", "k", "", []byte(`["\`))
	f.Fuzz(func(t *testing.T, org, eventType string, version int32, aggregateType, aggregateID, key, value string,
		payload []byte,
	) {
		envelope := valid()
		envelope.OrgID, envelope.EventType, envelope.EventVersion = org, eventType, version
		envelope.AggregateType, envelope.AggregateID = aggregateType, aggregateID
		envelope.Headers = map[string]string{key: value}
		envelope.Payload = payload
		err := envelope.Validate()
		if err != nil {
			if !errors.Is(err, event.ErrInvalid) || len(err.Error()) > 8<<10 {
				t.Fatalf("%.200v", err)
			}
			return
		}
		// What is valid travels, and stays valid.
		sent := event.Delivery{Envelope: envelope, OperationVersion: 1, PayloadSHA256: event.PayloadHash(payload)}
		headers, body := event.Encode(&sent, envelope.ID.String())
		received, err := event.Decode(headers, body)
		if err != nil {
			t.Fatalf("a valid envelope did not decode: %v", err)
		}
		if !sameDelivery(&sent, received) {
			t.Fatalf("sent %+v, received %+v", sent, received)
		}
	})
}

func newYear(year int) time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }

func oneHeader(key, value string) map[string]string { return map[string]string{key: value} }

// text is a JSON string document of size bytes.
func text(size int) json.RawMessage {
	return json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`)
}

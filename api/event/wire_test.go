package event_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/testenv"
)

func TestEncodedDeliveryComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := anyDelivery().Draw(t, "delivery")
		headers, body := event.Encode(&sent, sent.ID.String())
		received, err := event.Decode(headers, body)
		if err != nil {
			t.Fatal(err)
		}
		if !sameDelivery(&sent, received) {
			t.Fatalf("sent %+v, received %+v", sent, received)
		}
	})
}

// The same through a real broker, whose clients write and parse the headers.
func TestDeliveryComesBackThroughNATS(t *testing.T) {
	conn := testenv.NATS(t).Connect()
	inbox := conn.NewInbox()
	subscription, err := conn.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		sent := anyDelivery().Draw(t, "delivery")
		headers, body := event.Encode(&sent, sent.ID.String())
		if err := conn.PublishMsg(&nats.Msg{Subject: inbox, Header: headers, Data: body}); err != nil {
			t.Fatal(err)
		}
		message, err := subscription.NextMsg(10 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		received, err := event.Decode(message.Header, message.Data)
		if err != nil {
			t.Fatal(err)
		}
		if !sameDelivery(&sent, received) {
			t.Fatalf("sent %+v, received %+v", sent, received)
		}
	})
}

func TestDecodeNamesTheHeader(t *testing.T) {
	for name, c := range map[string]struct {
		change func(headers map[string][]string)
		header string
	}{
		"no id":            {func(h map[string][]string) { delete(h, event.HeaderEventID) }, event.HeaderEventID},
		"an id in braces":  {set(event.HeaderEventID, "{0190b0a0-0000-7000-8000-000000000001}"), event.HeaderEventID},
		"an org twice":     {func(h map[string][]string) { h[event.HeaderOrg] = []string{"a", "b"} }, event.HeaderOrg},
		"a cut escape":     {set(event.HeaderOrg, "acme%2"), event.HeaderOrg},
		"a wrong escape":   {set(event.HeaderOrg, "%zz"), event.HeaderOrg},
		"version 0":        {set(event.HeaderEventVersion, "0"), event.HeaderEventVersion},
		"version 2^31":     {set(event.HeaderEventVersion, "2147483648"), event.HeaderEventVersion},
		"version as text":  {set(event.HeaderEventVersion, "one"), event.HeaderEventVersion},
		"no time":          {func(h map[string][]string) { delete(h, event.HeaderOccurredAt) }, event.HeaderOccurredAt},
		"a bad time":       {set(event.HeaderOccurredAt, "yesterday"), event.HeaderOccurredAt},
		"no hash":          {func(h map[string][]string) { delete(h, event.HeaderPayloadSHA256) }, event.HeaderPayloadSHA256},
		"a short hash":     {set(event.HeaderPayloadSHA256, "abcd"), event.HeaderPayloadSHA256},
		"another hash":     {set(event.HeaderPayloadSHA256, strings.Repeat("0", 64)), event.HeaderPayloadSHA256},
		"a bad position":   {set(event.HeaderPosition, "-1"), event.HeaderPosition},
		"a bad operation":  {set(event.HeaderOperationVersion, "1.5"), event.HeaderOperationVersion},
		"an unknown ref":   {set(event.HeaderPayloadRef, "s3"), event.HeaderPayloadRef},
		"a trace prefixed": {set(event.HeaderExtraPrefix+"traceparent", "x"), event.HeaderExtraPrefix + "traceparent"},
	} {
		t.Run(name, func(t *testing.T) {
			headers, body := encoded(t)
			c.change(headers)
			_, err := event.Decode(headers, body)
			var invalid *event.DecodeError
			if !errors.As(err, &invalid) || !errors.Is(err, event.ErrInvalid) || invalid.Header != c.header {
				t.Fatalf("found %v, want a DecodeError for %s", err, c.header)
			}
		})
	}
}

func TestDecodeValidates(t *testing.T) {
	for name, c := range map[string]struct {
		change func(headers map[string][]string)
		field  string
	}{
		"no org":             {func(h map[string][]string) { delete(h, event.HeaderOrg) }, "orgId"},
		"a NUL in the org":   {set(event.HeaderOrg, "a%00"), "orgId"},
		"no type":            {func(h map[string][]string) { delete(h, event.HeaderEventType) }, "eventType"},
		"a line end":         {set(event.HeaderExtraPrefix+"k", "%0D%0A"), "headers[k]"},
		"an upper-case name": {set(event.HeaderExtraPrefix+"K", "x"), "headers"},
	} {
		headers, body := encoded(t)
		c.change(headers)
		_, err := event.Decode(headers, body)
		var invalid *event.ValidationError
		if !errors.As(err, &invalid) || !invalid.Has(c.field) {
			t.Errorf("%s: found %v, want a ValidationError for %s", name, err, c.field)
		}
	}
}

func TestDecodeWithoutBody(t *testing.T) {
	headers, _ := encoded(t)
	headers[event.HeaderPayloadRef] = []string{event.PayloadRefOutbox}
	received, err := event.Decode(headers, []byte("anything"))
	if err != nil || received.Payload != nil || received.PayloadRef != event.PayloadRefOutbox {
		t.Fatalf("found %+v, %v", received, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("0190b0a0-0000-7000-8000-000000000001", "acme", "OrderConfirmed", "1", "2026-01-02T03:04:05Z", "", "k", "v",
		[]byte(`{"a":1}`))
	f.Add("", "%", "%00", "-1", "0000-00-00T00:00:00Z", "outbox", "traceparent", "%", []byte(`null`))
	f.Add("0190b0a0000070008000000000000001", "a%2Eb", "A", "", "9999-12-31T23:59:59+00:00", "x", "", "", []byte(``))
	f.Fuzz(func(t *testing.T, id, org, eventType, version, occurredAt, ref, key, value string, body []byte) {
		hash := event.PayloadHash(body)
		headers := map[string][]string{
			event.HeaderEventID: {id}, event.HeaderOrg: {org}, event.HeaderEventType: {eventType},
			event.HeaderEventVersion: {version}, event.HeaderOccurredAt: {occurredAt}, event.HeaderPayloadRef: {ref},
			event.HeaderPayloadSHA256: {hex.EncodeToString(hash[:])}, event.HeaderExtraPrefix + key: {value},
		}
		received, err := event.Decode(headers, body)
		if err != nil {
			if !errors.Is(err, event.ErrInvalid) {
				t.Fatalf("an error that is not ErrInvalid: %v", err)
			}
			return
		}
		// What was accepted can be written again, and reads the same.
		again, againBody := event.Encode(received, "id")
		second, err := event.Decode(again, againBody)
		if err != nil || !sameDelivery(received, second) {
			t.Fatalf("accepted %+v, then %+v, %v", received, second, err)
		}
	})
}

func encoded(t *testing.T) (headers map[string][]string, body []byte) {
	t.Helper()
	envelope := valid()
	envelope.Headers = map[string]string{"traceparent": "00-x", "k": "v"}
	return event.Encode(&event.Delivery{
		Envelope: envelope, OperationVersion: 1, Position: 7, PayloadSHA256: event.PayloadHash(envelope.Payload),
	}, envelope.ID.String())
}

func set(name, value string) func(map[string][]string) {
	return func(headers map[string][]string) { headers[name] = []string{value} }
}

// sameDelivery compares what travels: with a payload reference the payload stays behind.
func sameDelivery(sent, received *event.Delivery) bool {
	payload := sent.Payload
	if sent.PayloadRef != "" {
		payload = nil
	}
	return sent.ID == received.ID && sent.OrgID == received.OrgID && sent.EventType == received.EventType &&
		sent.EventVersion == received.EventVersion && sent.AggregateType == received.AggregateType &&
		sent.AggregateID == received.AggregateID && sent.CorrelationID == received.CorrelationID &&
		sent.CausationID == received.CausationID && sent.OccurredAt.Equal(received.OccurredAt) &&
		maps.Equal(sent.Headers, received.Headers) && bytes.Equal(payload, received.Payload) &&
		sent.OperationVersion == received.OperationVersion && sent.PayloadSHA256 == received.PayloadSHA256 &&
		sent.Position == received.Position && sent.PipelineKey == received.PipelineKey &&
		sent.PayloadRef == received.PayloadRef
}

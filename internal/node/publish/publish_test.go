package publish

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node/nodetest"
)

type message struct {
	subject, id string
	headers     map[string]string
	body        string
}

// recorder is a broker that keeps what it gets, or refuses it.
type recorder struct {
	got []message
	err error
}

func (r *recorder) Publish(ctx context.Context, subject, id string, headers map[string]string, body []byte) error {
	if errors.Is(r.err, context.DeadlineExceeded) {
		<-ctx.Done()
		return ctx.Err()
	}
	if r.err == nil {
		r.got = append(r.got, message{subject, id, headers, string(body)})
	}
	return r.err
}

func run(t *testing.T, config string, broker *recorder) (engine.Step, *engine.Failure) {
	t.Helper()
	services := engine.Services{EventSubjectPrefix: "events"}
	if broker != nil {
		services.Publisher = broker
	}
	return nodetest.Run(t, nodetest.Case{
		Type: Type{}, Config: config, Services: services, Timeout: 50 * time.Millisecond,
		Payload: `{"n": 1.50, "name": "a b", "dots": "a.*.>", "inbox": "_INBOX", "dollar": "$JS", "events": "events", "lines": "a\r\nb", "empty": ""}`,
	})
}

func TestPublish(t *testing.T) {
	const id = "0197a5f0-1111-7000-8000-000000000001/n"
	tests := []struct{ config, subject, body string }{
		{`{"subject": "erp.orders"}`, "erp.orders",
			`{"n": 1.50, "name": "a b", "dots": "a.*.>", "inbox": "_INBOX", "dollar": "$JS", "events": "events", "lines": "a\r\nb", "empty": ""}`},
		{`{"subject": "erp.{{event.orgId}}.n-{{n}}", "body": {"n": "{{n}}"}}`, "erp.acme.n-1%2E50", `{"n":1.50}`},
		{`{"subject": "erp.{{dots}}", "body": "hello {{name}}"}`, "erp.a%2E%2A%2E%3E", "hello a b"},
		{`{"subject": "{{dollar}}.x", "body": null}`, "%24JS.x", "null"},
		{`{"subject": "eventsX.y", "body": []}`, "eventsX.y", "[]"},
	}
	for _, test := range tests {
		broker := &recorder{}
		step, failure := run(t, test.config, broker)
		if failure != nil || len(broker.got) != 1 {
			t.Errorf("%s: %v", test.config, failure)
			continue
		}
		got := broker.got[0]
		if got.subject != test.subject || got.body != test.body || got.id != id || len(got.headers["traceparent"]) != 55 {
			t.Errorf("%s: %+v", test.config, got)
		}
		if want := `{"messageId":"` + id + `","subject":"` + test.subject + `"}`; string(step.Output) != want {
			t.Errorf("%s: output %s", test.config, step.Output)
		}
	}
}

func TestPublishHeaders(t *testing.T) {
	broker := &recorder{}
	if _, failure := run(t, `{"subject": "a", "headers": {"X-Org": "{{event.orgId}}"}}`, broker); failure != nil {
		t.Fatal(failure)
	}
	headers := maps.Clone(broker.got[0].headers)
	delete(headers, "traceparent")
	if !maps.Equal(headers, map[string]string{"X-Org": "acme"}) {
		t.Errorf("headers %v", headers)
	}
}

func TestPublishFailures(t *testing.T) {
	transient, permanent := engine.ClassRetry, engine.ClassDeadLetter
	tests := []struct {
		name, config string
		broker       *recorder
		class        engine.Class
		code         engine.Code
	}{
		{"no broker", `{"subject": "a"}`, nil, permanent, engine.CodePermanentError},
		{"a broker that refuses", `{"subject": "a"}`, &recorder{err: errors.New("no")}, transient, engine.CodePublishFailed},
		{"a broker that is sure", `{"subject": "a"}`, &recorder{err: engine.Permanent(engine.CodeInvalidRequest, nil)}, permanent, engine.CodeInvalidRequest},
		{"a broker that hangs", `{"subject": "a"}`, &recorder{err: context.DeadlineExceeded}, transient, engine.CodeTimeout},
		{"the inbox", `{"subject": "{{inbox}}.a"}`, &recorder{}, permanent, engine.CodeInvalidRequest},
		{"the relay's events", `{"subject": "{{events}}.acme.OrderConfirmed"}`, &recorder{}, permanent, engine.CodeInvalidRequest},
		{"the relay's events, said plainly", `{"subject": "events.acme.OrderConfirmed"}`, &recorder{}, permanent, engine.CodeInvalidRequest},
		{"an empty value", `{"subject": "a.{{empty}}"}`, &recorder{}, permanent, engine.CodeInvalidRequest},
		{"an unset value", `{"subject": "a.{{nothing}}"}`, &recorder{}, permanent, engine.CodePlaceholderUnset},
		{"a header with lines", `{"subject": "a", "headers": {"X": "{{lines}}"}}`, &recorder{}, permanent, engine.CodeInvalidRequest},
	}
	for _, test := range tests {
		_, failure := run(t, test.config, test.broker)
		if failure == nil || failure.Class != test.class || failure.Code != test.code {
			t.Errorf("%s: %v, want %s", test.name, failure, test.code)
		}
		if test.broker != nil && len(test.broker.got) > 0 {
			t.Errorf("%s: published %v", test.name, test.broker.got)
		}
	}
}

func TestPublishFaults(t *testing.T) {
	allowed := "; allowed: tokens with '.' between them, such as erp.orders.{{event.orgId}}"
	for config, want := range map[string]string{
		`{"subject": "a..b"}`:                             "subject: found a subject with an empty token" + allowed,
		`{"subject": "a.*"}`:                              "subject: found a subject with a wildcard" + allowed,
		`{"subject": "a.>"}`:                              "subject: found a subject with a wildcard" + allowed,
		`{"subject": "a b"}`:                              "subject: found a subject with white space, or a character beyond ASCII" + allowed,
		`{"subject": "$JS.API.x"}`:                        "subject: found a subject of the broker's own, below $JS" + allowed,
		`{"subject": "$SYS.x"}`:                           "subject: found a subject of the broker's own, below $SYS" + allowed,
		`{"subject": "_INBOX.{{name}}"}`:                  "subject: found a subject of the broker's own, below _INBOX" + allowed,
		`{"subject": "` + strings.Repeat("a", 256) + `"}`: "subject: found a subject of 256 bytes, more than 255" + allowed,
		`{"subject": "a", "headers": {"Nats-Msg-Id": "x", "traceparent": "x", "b d": "x"}}`: "headers.Nats-Msg-Id: found a header that RelayOps or the broker sets; allowed: another name\n" +
			"headers.traceparent: found a header that RelayOps or the broker sets; allowed: another name\n" +
			"headers[\"b d\"]: found a field of that name; allowed: a header's name: 1 to 64 letters, digits, '-' and such",
	} {
		if got := nodetest.Faults(t, Type{}, config); got != want {
			t.Errorf("%s:\n got %s\nwant %s", config, got, want)
		}
	}
}

package relay

import (
	"net/url"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/relayops/relayops/api/event"
)

// messenger makes messages of deliveries.
type messenger struct {
	prefix, stream string
	// source is the CloudEvents source's first part; empty: no CloudEvents headers.
	source string
}

func newMessenger(key, prefix, stream string, cloudEvents bool) messenger {
	m := messenger{prefix: prefix, stream: stream}
	if cloudEvents {
		m.source = "/relayops/" + key + "/orgs/"
	}
	return m
}

// message is the message of a delivery under a message id.
func (m messenger) message(d *event.Delivery, msgID string) *nats.Msg {
	headers, body := event.Encode(d, msgID)
	// A stream of another name that has taken the subject must not swallow the event.
	headers[jetstream.ExpectedStreamHeader] = []string{m.stream}
	if m.source != "" {
		m.addCloudEvent(headers, d)
	}
	return &nats.Msg{Subject: event.Subject(m.prefix, d.OrgID, d.EventType), Header: headers, Data: body}
}

// addCloudEvent adds the headers of CloudEvents 1.0 in binary mode (NATS protocol binding 1.0.2).
func (m messenger) addCloudEvent(headers map[string][]string, d *event.Delivery) {
	set := func(name, value string) { headers[name] = []string{value} }
	set("ce-specversion", "1.0")
	set("ce-id", d.ID.String())
	set("ce-source", m.source+url.PathEscape(d.OrgID))
	set("ce-type", d.EventType)
	set("ce-time", d.OccurredAt.UTC().Format(time.RFC3339Nano))
	if subject := d.AggregateType + "/" + d.AggregateID; subject != "/" {
		set("ce-subject", url.PathEscape(d.AggregateType)+"/"+url.PathEscape(d.AggregateID))
	}
	if d.PayloadRef == "" {
		set("content-type", "application/json")
	}
}

// republishID is the message id of the n-th repair of a delivery; n = 0 is its first publication.
func republishID(d *event.Delivery, n int) string {
	if n == 0 {
		return d.ID.String()
	}
	return d.ID.String() + ".r" + strconv.Itoa(n)
}

// sameEvent reports whether a stored message is the delivery: the same event of the same org, in the same operation,
// with the same payload. The message id proves nothing: two orgs may use the same event id.
func sameEvent(stored nats.Header, wanted *nats.Msg) bool {
	for _, name := range []string{
		event.HeaderEventID, event.HeaderOrg, event.HeaderPayloadSHA256, event.HeaderOperationVersion, event.HeaderPipeline,
	} {
		if first(stored[name]) != first(wanted.Header[name]) {
			return false
		}
	}
	return true
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

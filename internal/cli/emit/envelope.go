package emit

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/runspec"
)

// envelope is the event that the flags describe, valid.
func (f *flags) envelope(stdin io.Reader) (event.Envelope, error) {
	payload, err := readPayload(f.payload, stdin)
	if err != nil {
		return event.Envelope{}, err
	}
	envelope, err := event.New(f.org, f.eventType, payload)
	if err != nil {
		return event.Envelope{}, err
	}
	if f.id != "" {
		if envelope.ID, err = uuid.Parse(f.id); err != nil {
			return event.Envelope{}, fmt.Errorf("--id: found %q, allowed: a UUID", f.id)
		}
	}
	if envelope.Headers, err = parseHeaders(f.headers); err != nil {
		return event.Envelope{}, err
	}
	envelope.EventVersion = f.version
	envelope.AggregateType, envelope.AggregateID = f.aggregateType, f.aggregateID
	envelope.CorrelationID, envelope.CausationID = f.correlationID, f.causationID
	err = envelope.Validate()
	return envelope, err
}

// readPayload reads no more than a payload may have, and one byte to tell.
func readPayload(source string, stdin io.Reader) (json.RawMessage, error) {
	path, isFile := strings.CutPrefix(source, "@")
	if !isFile && source != "-" {
		return json.RawMessage(source), nil
	}
	from, name := stdin, "standard input"
	if isFile {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("--payload: %w", err)
		}
		defer func() { _ = file.Close() }()
		from, name = file, path
	}
	payload, err := io.ReadAll(io.LimitReader(from, event.MaxPayloadBytes+1))
	if err != nil {
		return nil, fmt.Errorf("--payload: read %s: %w", name, err)
	}
	return payload, nil
}

func parseHeaders(pairs []string) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	headers := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		key, value, isPair := strings.Cut(pair, "=")
		if !isPair {
			return nil, fmt.Errorf("--header: found %q, allowed: key=value", pair)
		}
		if _, twice := headers[key]; twice {
			return nil, fmt.Errorf("--header: found %q twice, allowed: each key once", key)
		}
		headers[key] = value
	}
	return headers, nil
}

// table is the outbox to write to: that of the relay that --relay names, or the only one there is.
func (f *flags) table(byRelay map[string]runspec.Table) (outbox.Table, error) {
	keys := slices.Sorted(maps.Keys(byRelay))
	if f.relay != "" {
		table, exists := byRelay[f.relay]
		if !exists {
			return outbox.Table{}, fmt.Errorf("--relay: found %q, allowed: %s", f.relay, listed(keys))
		}
		return table, nil
	}
	for _, key := range keys {
		if byRelay[key].String() != byRelay[keys[0]].String() {
			return outbox.Table{}, fmt.Errorf("the relays have outbox tables of their own: pass --relay, one of %s",
				listed(keys))
		}
	}
	if len(keys) == 0 {
		return outbox.Table{}, nil
	}
	return byRelay[keys[0]], nil
}

func listed(keys []string) string {
	if len(keys) == 0 {
		return "none, because no relayops dev told of any"
	}
	return strings.Join(keys, ", ")
}

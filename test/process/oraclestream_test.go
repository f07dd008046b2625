package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"
)

// message is one message of the stream, as it is stored.
type message struct {
	seq     uint64
	subject string
	msgID   string
	number  string
}

// messages reads the whole stream, message by message.
func (w *world) messages() []message {
	w.t.Helper()
	var all []message
	eventually(w.t, func() error {
		ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
		defer cancel()
		stream, err := w.jetStream().Stream(ctx, streamName)
		if err != nil {
			return err
		}
		state := stream.CachedInfo().State
		all = all[:0]
		for seq := state.FirstSeq; seq != 0 && seq <= state.LastSeq; seq++ {
			raw, err := stream.GetMsg(ctx, seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue
			}
			if err != nil {
				return fmt.Errorf("read message %d: %w", seq, err)
			}
			var body struct {
				Number string `json:"number"`
			}
			if err := json.Unmarshal(raw.Data, &body); err != nil {
				return fmt.Errorf("message %d: %w", seq, err)
			}
			all = append(all, message{seq, raw.Subject, raw.Header.Get("Nats-Msg-Id"), body.Number})
		}
		return nil
	})
	return all
}

// checkStream: one OrderConfirmed message for each order, and one OrderIntegrated for each that succeeded, under its
// tenant's subject; nothing else.
func checkStream(committed []order, fateOf func(order) fate, messages []message) error {
	subjects := make(map[string]string)
	wanted, found := make(map[string]int), make(map[string]int)
	for _, o := range committed {
		tenant := strings.NewReplacer(" ", "%20", "/", "%2F").Replace(o.org)
		wanted["events."+tenant+".OrderConfirmed "+o.Number] = 1
		if fateOf(o).state == "SUCCEEDED" {
			wanted["events."+tenant+".OrderIntegrated "+o.Number] = 1
		}
	}
	for _, m := range messages {
		name := m.subject + " " + m.number
		found[name]++
		if other, taken := subjects[m.msgID]; taken || m.msgID == "" {
			return fmt.Errorf("messages %s and %s have the message id %q", name, other, m.msgID)
		}
		subjects[m.msgID] = name
	}
	var wrong faults
	for name, n := range wanted {
		if found[name] != n {
			wrong.add("the stream holds %d messages %s, wanted %d", found[name], name, n)
		}
		delete(found, name)
	}
	for name, n := range found {
		wrong.add("the stream holds %d messages %s, which should not be", n, name)
	}
	return wrong.err()
}

// checkOutbox: every row is PUBLISHED at the place of a message that is its own, and no attempt was counted.
func (w *world) checkOutbox(ctx context.Context, messages []message) error {
	bySeq := make(map[uint64]message)
	for _, m := range messages {
		bySeq[m.seq] = m
	}
	rows, err := w.pool.Query(ctx, `SELECT event_id::text, event_type, payload->>'number', status, attempts,
		coalesce(stream, ''), coalesce(stream_seq, 0), published_at IS NOT NULL FROM relayops.outbox_events`)
	if err != nil {
		return err
	}
	var id, eventType, number, status, stream string
	var attempts int
	var seq int64
	var dated bool
	var wrong faults
	columns := []any{&id, &eventType, &number, &status, &attempts, &stream, &seq, &dated}
	_, err = pgx.ForEachRow(rows, columns, func() error {
		m := bySeq[uint64(seq)]
		if status != "PUBLISHED" || attempts != 0 || stream != streamName || !dated ||
			m.number != number || !strings.HasSuffix(m.subject, "."+eventType) || !strings.HasPrefix(m.msgID, id) {
			wrong.add("outbox row %s of order %s: %s, %d attempts, at %s %d, where the message is %+v",
				eventType, number, status, attempts, stream, seq, m)
		}
		return nil
	})
	return errors.Join(wrong.err(), err)
}

// checkAbandoned: what was rolled back is nowhere. (The other checks find it too; this one says it plainly.)
func (w *world) checkAbandoned(ctx context.Context, messages []message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.sink.seen()
	var wrong faults
	for _, o := range w.abandoned {
		var rows int
		err := w.pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM relayops.outbox_events WHERE event_id = $1)
			+ (SELECT count(*) FROM relayops.pipeline_executions WHERE event_id = $1)`, o.eventID).Scan(&rows)
		if err != nil {
			return err
		}
		published := slices.ContainsFunc(messages, func(m message) bool { return m.number == o.Number })
		if rows > 0 || published || len(seen[o.Number]) > 0 {
			wrong.add("order %s was rolled back: %d rows, published %t, %d requests",
				o.Number, rows, published, len(seen[o.Number]))
		}
	}
	return wrong.err()
}

// awaitAcknowledged waits until the consumer owes and is owed nothing.
func (w *world) awaitAcknowledged() {
	w.t.Helper()
	js := w.jetStream()
	eventually(w.t, func() error {
		ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
		defer cancel()
		consumer, err := js.Consumer(ctx, streamName, consumerName)
		if err != nil {
			return err
		}
		if info := consumer.CachedInfo(); info.NumAckPending > 0 || info.NumPending > 0 {
			return fmt.Errorf("the consumer has %d messages to deliver and %d not acknowledged",
				info.NumPending, info.NumAckPending)
		}
		return nil
	})
}

package event_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/testenv"
)

// What Validate accepts, PostgreSQL stores, and prints in the size that Validate reckoned with.
func TestValidPayloadIsOneForPostgreSQL(t *testing.T) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, testenv.EmptyDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	rapid.Check(t, func(t *rapid.T) {
		document := anyJSON().Draw(t, "document")
		envelope := valid()
		envelope.Payload = json.RawMessage(document)
		if err := envelope.Validate(); err != nil {
			t.Fatalf("refused %q: %v", document, err)
		}
		var printed string
		if err := conn.QueryRow(ctx, "SELECT $1::jsonb::text", document).Scan(&printed); err != nil {
			t.Fatalf("PostgreSQL refused %q: %v", document, err)
		}
		if reckoned := event.JSONBTextSize(document); reckoned != len(printed) {
			t.Fatalf("%q: reckoned %d bytes, PostgreSQL prints %d: %q", document, reckoned, len(printed), printed)
		}
	})
}

func TestLimitsOfNumbersAreThoseOfPostgreSQL(t *testing.T) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, testenv.EmptyDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	for _, number := range []string{
		"1e131071", "1e131072", "10e131070", "10e131071", "0.1e131072", "0.1e131073", "0.001e131074", "0.001e131075",
		"1e-16383", "1e-16384", "1.5e-16382", "1.5e-16383", "0e-16383", "0e-16384", "0e400000", "0.0e400000",
		"1e999999999", "1e-999999999", "1e1000000001", "1e9999999999999999999",
	} {
		envelope := valid()
		envelope.Payload = json.RawMessage(number)
		refused := envelope.Validate() != nil
		var size int
		err := conn.QueryRow(ctx, "SELECT length($1::jsonb::text)", number).Scan(&size)
		if refused != (err != nil) {
			t.Errorf("%s: refused by Validate: %t, by PostgreSQL: %v", number, refused, err)
		}
		if err == nil && size != event.JSONBTextSize(number) {
			t.Errorf("%s: reckoned %d, found %d", number, event.JSONBTextSize(number), size)
		}
	}
}

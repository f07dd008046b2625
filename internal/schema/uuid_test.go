package schema_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/internal/testenv"
)

// The bits of RFC 9562, section 5.7: time, version, variant, and 74 bits that vary.
func TestUUIDv7(t *testing.T) {
	conn := connect(t, testenv.Database(t))
	rows, err := conn.Query(t.Context(), `SELECT before, id, clock_timestamp() FROM (
		SELECT clock_timestamp() AS before, relayops.uuid_v7() AS id FROM generate_series(1, 2000)) AS made`)
	if err != nil {
		t.Fatal(err)
	}
	var zeros, ones [16]byte
	seen := make(map[uuid.UUID]bool)
	var before, after time.Time
	var id uuid.UUID
	_, err = pgx.ForEachRow(rows, []any{&before, &id, &after}, func() error {
		if id.Version() != 7 || id.Variant() != uuid.RFC4122 {
			t.Fatalf("%s has version %d and variant %s", id, id.Version(), id.Variant())
		}
		milliseconds := int64(0)
		for _, b := range id[:6] {
			milliseconds = milliseconds<<8 | int64(b)
		}
		if milliseconds < before.UnixMilli() || milliseconds > after.UnixMilli() {
			t.Fatalf("%s holds %d, made between %d and %d", id, milliseconds, before.UnixMilli(), after.UnixMilli())
		}
		if seen[id] {
			t.Fatalf("%s came twice", id)
		}
		seen[id] = true
		for i, b := range id {
			ones[i] |= b
			zeros[i] |= ^b
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// In 2000 ids each of the random bits was 0 and was 1; version and variant never changed.
	want := [16]byte{6: 0x0f, 7: 0xff, 8: 0x3f, 9: 0xff, 10: 0xff, 11: 0xff, 12: 0xff, 13: 0xff, 14: 0xff, 15: 0xff}
	for i := 6; i < 16; i++ {
		if varied := ones[i] & zeros[i]; varied != want[i] {
			t.Errorf("byte %d varied in the bits %08b, want %08b", i, varied, want[i])
		}
	}
}

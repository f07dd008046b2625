package execution

import (
	"reflect"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

func TestNamedArgsAreThoseOfPgx(t *testing.T) {
	id := uuid.New()
	const sql = `SELECT @one, '@none', "@none", @two::uuid, @one -- @none`
	for range 2 { // The second time the statement is known.
		numbered, values, err := namedArgs{"two": id, "one": 1, "unused": 3}.RewriteQuery(t.Context(), nil, sql, nil)
		if err != nil {
			t.Fatal(err)
		}
		wanted, _, err := pgx.NamedArgs{"two": id, "one": 1}.RewriteQuery(t.Context(), nil, sql, nil)
		if err != nil {
			t.Fatal(err)
		}
		if numbered != wanted || !reflect.DeepEqual(values, []any{1, [16]byte(id)}) {
			t.Errorf("found %s with %v, want %s with the number and the UUID's bytes", numbered, values, wanted)
		}
	}
}

func BenchmarkStatementWithNamedArguments(b *testing.B) {
	values := map[string]any{
		"execution_id": uuid.New(), "org": "acme", "pipeline": "main/shop/orders", "event_id": uuid.New(), "version": int32(1),
	}
	b.Run("namedArgs", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _, _ = namedArgs(values).RewriteQuery(b.Context(), nil, claimSQL, nil)
		}
	})
	b.Run("pgx", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _, _ = pgx.NamedArgs(values).RewriteQuery(b.Context(), nil, claimSQL, nil)
		}
	})
}

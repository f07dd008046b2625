package schema_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

type querier interface {
	QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row
}

func queryInt(t testing.TB, db querier, sql string, arguments ...any) (n int) {
	t.Helper()
	if err := db.QueryRow(t.Context(), sql, arguments...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func randomSuffix() string { return uuid.NewString()[:8] }

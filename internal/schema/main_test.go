package schema_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// connect opens a connection that the test closes.
func connect(t testing.TB, databaseURL string) *pgx.Conn {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	return conn
}

// exec runs SQL that has to work.
func exec(t testing.TB, conn *pgx.Conn, sql string, arguments ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, arguments...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// as makes a role, and runs the rest of the test in a connection of its own as that role.
func as(t testing.TB, databaseURL string, grants ...string) (conn *pgx.Conn, role string) {
	t.Helper()
	owner := connect(t, databaseURL)
	role = "role_" + randomSuffix()
	exec(t, owner, "CREATE ROLE "+role)
	for _, grant := range grants {
		exec(t, owner, grant+" TO "+role)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		if _, err := owner.Exec(ctx, "DROP OWNED BY "+role+"; DROP ROLE "+role); err != nil {
			t.Errorf("drop role: %v", err)
		}
	})
	conn = connect(t, databaseURL)
	exec(t, conn, "SET ROLE "+role)
	return conn, role
}

package execution

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/testenv"
)

// A plan is made while the table is new and kept for long: it has to find a row by its key even when every index looks
// alike to the planner.
func TestLeasedRowsAreFoundByTheirKey(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	ledger := newLedger(t, pool)
	claim := mustClaim(t, ledger, newEvent(t, "acme"), Claimed)

	end, arguments, err := ledger.endStatement(claim.Lease, transition{
		to: Succeeded, ending: Ending{Steps: []engine.Step{step("one")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, sql := range map[string]string{"end": end, "steps": commitSQL, "lock": lockSQL} {
		found, err := pool.Query(t.Context(), "EXPLAIN "+sql, arguments)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lines, err := pgx.CollectRows(found, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		plan := strings.Join(lines, "\n")
		if !strings.Contains(plan, "Index Scan using pipeline_executions_pkey on pipeline_executions") {
			t.Errorf("%s: found\n%s\nwant a look-up by the primary key", name, plan)
		}
	}
}

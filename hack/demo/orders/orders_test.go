package orders_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/hack/demo/orders"
	"github.com/relayops/relayops/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestOrdersAndEventsCommitTogetherOrNotAtAll(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	if err := orders.Prepare(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	report, err := orders.Run(t.Context(), pool, orders.Plan{Orders: 60, Rate: 10_000, Seed: 1, PoisonSuffix: "-POISON"})
	if err != nil {
		t.Fatal(err)
	}
	if report.Committed != 60 || report.RolledBack != 3 || len(report.RolledBackEvents) != 3 {
		t.Errorf("report = %+v, want 60 committed and 3 rolled back", report)
	}
	if got := count(t, pool, "SELECT count(*) FROM shop.orders"); got != 60 {
		t.Errorf("orders = %d, want 60", got)
	}
	same := `SELECT count(*) FROM shop.orders o JOIN relayops.outbox_events e
		ON e.org_id = o.org_id AND e.aggregate_id = o.number AND e.payload->>'orderNumber' = o.number`
	if got := count(t, pool, same); got != 60 {
		t.Errorf("orders with their event = %d, want 60", got)
	}
	phantoms := "SELECT count(*) FROM relayops.outbox_events WHERE event_id = ANY($1)"
	if got := count(t, pool, phantoms, report.RolledBackEvents); got != 0 {
		t.Errorf("events of orders that were rolled back = %d, want 0", got)
	}
	poisoned := "SELECT count(*) FROM relayops.outbox_events WHERE event_id = $1 AND aggregate_id LIKE '%-POISON'"
	if got := count(t, pool, poisoned, report.PoisonEvent); got != 1 {
		t.Errorf("poisoned orders = %d, want the one that the report names", got)
	}
}

func count(t *testing.T, pool *pgxpool.Pool, query string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

package execution

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const testPipeline = "shop/default/order-post"

// testConfig is a ledger's configuration for tests; change edits it.
func testConfig(t testing.TB, change ...func(*Config)) Config {
	t.Helper()
	writer, err := outbox.NewWriter()
	if err != nil {
		t.Fatal(err)
	}
	config := Config{
		PipelineKey: testPipeline, Owner: t.Name(), MaxAttempts: 3, Lease: time.Minute,
		Events: writer, StatementTimeout: 5 * time.Second,
	}
	for _, edit := range change {
		edit(&config)
	}
	return config
}

func newLedger(t testing.TB, pool *pgxpool.Pool, change ...func(*Config)) *Ledger {
	t.Helper()
	ledger, err := New(pool, testConfig(t, change...))
	if err != nil {
		t.Fatal(err)
	}
	return ledger
}

func owner(name string) func(*Config) { return func(c *Config) { c.Owner = name } }

func pipeline(key string) func(*Config) { return func(c *Config) { c.PipelineKey = key } }

func shortLease(c *Config) { c.Lease = time.Millisecond }

// newEvent is a delivered event of an org.
func newEvent(t testing.TB, org string) *event.Delivery {
	t.Helper()
	envelope, err := event.New(org, "OrderConfirmed", json.RawMessage(`{"number": "A-1"}`))
	if err != nil {
		t.Fatal(err)
	}
	envelope.OccurredAt = envelope.OccurredAt.Truncate(time.Microsecond)
	return &event.Delivery{
		Envelope: envelope, OperationVersion: 1, PayloadSHA256: event.PayloadHash(envelope.Payload),
	}
}

func request(d *event.Delivery) Request {
	return Request{Delivery: d, Revision: "r1", Stream: "RELAYOPS", StreamSeq: 7, TakeOver: true}
}

// mustClaim claims and expects a verdict.
func mustClaim(t testing.TB, ledger *Ledger, d *event.Delivery, want Verdict) Claim {
	t.Helper()
	claim, err := ledger.Claim(t.Context(), request(d))
	if err != nil {
		t.Fatalf("claim: %v", err)
	}
	if claim.Verdict != want {
		t.Fatalf("claim: verdict %s, want %s (%+v)", claim.Verdict, want, claim)
	}
	return claim
}

func mustClaimDue(t testing.TB, ledger *Ledger, most, want int) []Claim {
	t.Helper()
	claims, err := ledger.ClaimDue(t.Context(), most, true)
	if err != nil {
		t.Fatalf("claim due executions: %v", err)
	}
	if len(claims) != want {
		t.Fatalf("claim due executions: %d, want %d", len(claims), want)
	}
	return claims
}

func step(node string) engine.Step {
	at := time.Now().UTC().Truncate(time.Microsecond)
	return engine.Step{
		NodeID: node, NodeType: "transform", Outcome: engine.StepSucceeded, Branch: engine.BranchSuccess,
		Output: json.RawMessage(`{"of":"` + node + `"}`), StartedAt: at, FinishedAt: at.Add(time.Millisecond),
	}
}

// queryOne reads one value.
func queryOne[T any](t testing.TB, pool *pgxpool.Pool, sql string, arguments ...any) T {
	t.Helper()
	var value T
	if err := pool.QueryRow(context.Background(), sql, arguments...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// ofExecution reads a column of the one execution that a condition picks.
func ofExecution[T any](t testing.TB, pool *pgxpool.Pool, column, where string, arguments ...any) T {
	t.Helper()
	return queryOne[T](t, pool, "SELECT "+column+" FROM relayops.pipeline_executions WHERE "+where, arguments...)
}

// rows counts the rows of one of our tables.
func rows(t testing.TB, pool *pgxpool.Pool, table, where string, arguments ...any) int {
	t.Helper()
	return queryOne[int](t, pool, "SELECT count(*) FROM relayops."+table+" WHERE "+where, arguments...)
}

func exec(t testing.TB, pool *pgxpool.Pool, sql string, arguments ...any) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), sql, arguments...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

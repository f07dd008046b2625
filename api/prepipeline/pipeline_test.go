package prepipeline_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // The driver "pgx" of database/sql.

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/api/prepipeline"
	"github.com/relayops/relayops/internal/testenv"
)

// orderPre asks a credit service, and emits an event for large orders.
const orderPre = `{
  "nodes": [
    {"id": "start", "type": "start"},
    {"id": "credit", "type": "http-request",
     "config": {"method": "POST", "url": "%s/credit", "body": {"number": "{{orderNumber}}"}}},
    {"id": "large", "type": "emit-event",
     "config": {"eventType": "LargeOrderPlaced", "payload": {"number": "{{orderNumber}}", "total": "{{total}}"}}},
    {"id": "checked", "type": "set-status",
     "config": {"statusTag": "credit_ok", "name": "Credit checked", "phase": "order.pre"}}],
  "edges": [{"from": "start", "to": "credit"}, {"from": "credit", "to": "large"}, {"from": "large", "to": "checked"}]
}`

const loopback = "127.0.0.0/8"

// creditService answers with status, and counts what it was asked.
func creditService(t *testing.T, status int) (url string, asked func() []*http.Request) {
	t.Helper()
	requests := make(chan *http.Request, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, `{"limit": 5000}`)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() (all []*http.Request) {
		for {
			select {
			case r := <-requests:
				all = append(all, r)
			default:
				return all
			}
		}
	}
}

func compile(t testing.TB, definition string, options ...prepipeline.Option) *prepipeline.Pipeline {
	t.Helper()
	options = append(options, prepipeline.WithAllowedCIDRs(loopback))
	p, err := prepipeline.Compile("order.pre", []byte(definition), options...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func placed(t testing.TB) event.Envelope {
	t.Helper()
	e, err := event.New("acme", "OrderPlaced", json.RawMessage(`{"orderNumber":"A-1","total":1250.50}`))
	if err != nil {
		t.Fatal(err)
	}
	e.AggregateType, e.AggregateID = "Order", "A-1"
	return e
}

// Events are written by the caller's transaction, and share its fate (guarantees 2 and 12).
func TestRunWritesThroughTheCallersTransaction(t *testing.T) {
	databaseURL := testenv.Database(t)
	pool := testenv.Pool(t, databaseURL)
	db, err := sql.Open("pgx", databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	url, _ := creditService(t, http.StatusOK)
	p := compile(t, fmt.Sprintf(orderPre, url))

	for name, run := range map[string]func(e event.Envelope, commit bool) (prepipeline.Result, error){
		"pgx": func(e event.Envelope, commit bool) (result prepipeline.Result, err error) {
			tx, err := pool.Begin(t.Context())
			if err != nil {
				return result, err
			}
			defer func() { _ = tx.Rollback(context.Background()) }()
			if result, err = p.Run(t.Context(), tx, e); err != nil || !commit {
				return result, err
			}
			return result, tx.Commit(t.Context())
		},
		"database/sql": func(e event.Envelope, commit bool) (result prepipeline.Result, err error) {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				return result, err
			}
			defer func() { _ = tx.Rollback() }()
			if result, err = p.RunSQL(t.Context(), tx, e); err != nil || !commit {
				return result, err
			}
			return result, tx.Commit()
		},
	} {
		for _, commit := range []bool{false, true, true} {
			e := placed(t)
			result, err := run(e, commit)
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Tags) != 1 || result.Tags[0].Tag != "credit_ok" || result.Tags[0].Phase != "order.pre" {
				t.Errorf("%s: tags %+v", name, result.Tags)
			}
			if !strings.Contains(string(result.Output("credit")), "5000") {
				t.Errorf("%s: output %s", name, result.Output("credit"))
			}
			var n int
			err = pool.QueryRow(t.Context(), `SELECT count(*) FROM relayops.outbox_events WHERE event_type = 'LargeOrderPlaced'
				AND org_id = 'acme' AND causation_id = $1 AND payload = '{"number": "A-1", "total": 1250.50}'
				AND aggregate_id = 'A-1'`, e.ID.String()).Scan(&n)
			if err != nil {
				t.Fatal(err)
			}
			if (n == 1) != commit || n > 1 {
				t.Errorf("%s, commit %t: found %d events", name, commit, n)
			}
		}
	}
	var others int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM relayops.outbox_events WHERE event_type = 'OrderPlaced'").
		Scan(&others); err != nil || others != 0 {
		t.Errorf("the event that the pipeline ran on was stored %d times, %v", others, err)
	}
}

// A request that is tried again sends the same idempotency key, and emits the same event.
func TestSameEventIsTheSameExecution(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	url, asked := creditService(t, http.StatusOK)
	clock := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := compile(t, fmt.Sprintf(orderPre, url), prepipeline.WithClock(func() time.Time { return clock }))
	e := placed(t)
	for range 2 {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := p.Run(t.Context(), tx, e)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		clock = clock.Add(time.Hour)
	}
	requests := asked()
	if len(requests) != 2 || requests[0].Header.Get("Idempotency-Key") == "" ||
		requests[0].Header.Get("Idempotency-Key") != requests[1].Header.Get("Idempotency-Key") {
		t.Errorf("found %d requests, the keys %v", len(requests), requests)
	}
	var n int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM relayops.outbox_events").Scan(&n); err != nil || n != 1 {
		t.Errorf("found %d events, %v", n, err)
	}
	other := e
	other.OrgID = "globex"
	first, _ := p.Evaluate(t.Context(), e)
	second, _ := p.Evaluate(t.Context(), other)
	if first.ExecutionID == second.ExecutionID || first.Events[0].ID == second.Events[0].ID {
		t.Error("two organisations share an execution")
	}
}

func TestFailedPipelineGivesNoEvents(t *testing.T) {
	// The event comes before the call that fails.
	const definition = `{"nodes": [{"id": "start", "type": "start"},
		{"id": "early", "type": "emit-event", "config": {"eventType": "Early", "payload": {}}},
		{"id": "credit", "type": "http-request", "config": {"method": "GET", "url": "%s/secret-path"}}],
		"edges": [{"from": "start", "to": "early"}, {"from": "early", "to": "credit"}]}`
	pool := testenv.Pool(t, testenv.Database(t))
	for status, class := range map[int]string{
		http.StatusUnprocessableEntity: prepipeline.ClassDeadLetter, http.StatusServiceUnavailable: prepipeline.ClassRetry,
	} {
		url, asked := creditService(t, status)
		p := compile(t, fmt.Sprintf(definition, url))
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		result, err := p.Run(t.Context(), tx, placed(t))
		var failure *prepipeline.FailureError
		if !errors.As(err, &failure) || failure.Class != class || failure.HTTPStatus != status ||
			failure.Node != "credit" || failure.Code != "http_status" {
			t.Errorf("HTTP status %d: found %v", status, err)
		}
		if strings.Contains(fmt.Sprint(err), "secret-path") {
			t.Errorf("the error shows the address: %v", err)
		}
		if len(result.Events) != 0 || len(result.Steps) != 3 || len(asked()) != 1 {
			t.Errorf("HTTP status %d: found %+v", status, result)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM relayops.outbox_events").Scan(&n); err != nil || n != 0 {
		t.Fatalf("found %d events, %v", n, err)
	}
}

func TestAddressesAreGuarded(t *testing.T) {
	url, asked := creditService(t, http.StatusOK)
	p, err := prepipeline.Compile("order.pre", []byte(fmt.Sprintf(orderPre, url)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Evaluate(t.Context(), placed(t))
	var failure *prepipeline.FailureError
	if !errors.As(err, &failure) || failure.Code != "address_refused" || len(asked()) != 0 {
		t.Fatalf("found %v", err)
	}
}

func TestTheCallersDeadlineCounts(t *testing.T) {
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hanging.Close()
	defer close(release)
	p := compile(t, fmt.Sprintf(orderPre, hanging.URL))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	result, err := p.Evaluate(ctx, placed(t))
	if !errors.Is(err, context.DeadlineExceeded) || len(result.Events) != 0 || time.Since(start) > 5*time.Second {
		t.Fatalf("after %v: %v", time.Since(start), err)
	}
}

func TestPublishIsRefusedWithEveryOtherMistake(t *testing.T) {
	_, err := prepipeline.Compile("order.pre", []byte(`{"nodes": [
		{"id": "start", "type": "start"},
		{"id": "tell", "type": "publish", "config": {"subject": "erp.orders"}},
		{"id": "odd", "type": "no-such-type"}],
		"edges": [{"from": "start", "to": "tell"}, {"from": "start", "to": "odd"}]}`))
	var invalid *prepipeline.InvalidError
	if !errors.As(err, &invalid) || len(invalid.Faults) != 2 {
		t.Fatalf("found %v", err)
	}
	if fault := invalid.Faults[0]; fault.Node != "tell" || fault.Field != "nodes[1].type" ||
		!strings.Contains(fault.Found, "may roll back") {
		t.Errorf("found %+v", fault)
	}
	if !strings.Contains(err.Error(), "no-such-type") {
		t.Errorf("found %v", err)
	}
}

func TestCompileRefuses(t *testing.T) {
	good := fmt.Sprintf(orderPre, "https://example.com")
	for name, c := range map[string]struct {
		definition string
		option     prepipeline.Option
		want       string
	}{
		"no JSON":   {`{`, nil, "pipeline order.pre"},
		"no nodes":  {`{}`, nil, "start"},
		"bad range": {good, prepipeline.WithAllowedCIDRs("10.0.0.0"), "10.0.0.0"},
		"bad table": {good, prepipeline.WithTable(outbox.Table{Schema: "shop"}), "table.name"},
	} {
		options := []prepipeline.Option{}
		if c.option != nil {
			options = append(options, c.option)
		}
		if _, err := prepipeline.Compile("order.pre", []byte(c.definition), options...); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: found %v", name, err)
		}
	}
}

func TestInvalidEventIsRefused(t *testing.T) {
	url, asked := creditService(t, http.StatusOK)
	p := compile(t, fmt.Sprintf(orderPre, url))
	e := placed(t)
	e.OrgID = ""
	var invalid *event.ValidationError
	if _, err := p.Evaluate(t.Context(), e); !errors.As(err, &invalid) || !invalid.Has("orgId") || len(asked()) != 0 {
		t.Fatalf("found %v", err)
	}
}

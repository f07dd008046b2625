package trace_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/testenv"
	"github.com/relayops/relayops/internal/trace"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var (
	eventID     = uuid.MustParse("0198c5a0-0000-7000-8000-000000000001")
	childID     = uuid.MustParse("0198c5a0-0000-7000-8000-000000000002")
	executionID = uuid.MustParse("0198c5a0-0000-7000-8000-000000000003")
	letterID    = uuid.MustParse("0198c5a0-0000-7000-8000-000000000004")
)

const pipeline = "dev/default/order-post"

func TestTheWholeStoryOfARetriedEvent(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	publishedEvent(t, pool, "acme", eventID)
	exec(t, pool, `INSERT INTO relayops.pipeline_executions (execution_id, org_id, pipeline_key, event_id,
		operation_version, event_type, payload_sha256, revision, state, attempt, executed_ms, status_tags, occurred_at,
		started_at, finished_at)
		VALUES ($1, 'acme', $2, $3, 1, 'OrderConfirmed', '\x00', 'abc', 'SUCCEEDED', 3, 1500,
		'[{"phase":"order.post","tag":"success","name":"Integrated with ERP","at":"2026-12-01T10:00:05Z"}]',
		now(), now(), now())`, executionID, pipeline, eventID)
	step(t, pool, "start", 1, "start", "SUCCEEDED", "", 0, nil, "10:00:00.000", "10:00:00.001")
	step(t, pool, "notify", 1, "http-request", "FAILED", "http_status", 500, nil, "10:00:00.001", "10:00:00.301")
	// Attempt 2 was killed before it recorded a step.
	step(t, pool, "notify", 3, "http-request", "SUCCEEDED", "", 200, nil, "10:00:04.301", "10:00:04.401")
	step(t, pool, "emit", 3, "emit-event", "SUCCEEDED", "", 0,
		`{"eventId":"`+childID.String()+`","eventType":"OrderPosted"}`, "10:00:04.401", "10:00:04.402")
	exec(t, pool, `INSERT INTO relayops.outbox_events (event_id, org_id, event_type, payload)
		VALUES ($1, 'acme', 'OrderPosted', '{}')`, childID)

	story := load(t, pool, "")
	if story.Event.OrgID != "acme" || story.Event.Type != "OrderConfirmed" || story.Event.AggregateID != "1042" {
		t.Errorf("event = %+v", story.Event)
	}
	if got := story.Event.TraceID(); got != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("TraceID = %q", got)
	}
	p := story.Publication
	if p == nil || p.Status != "PUBLISHED" || p.Stream != "RELAYOPS" || p.StreamSeq != 42 || p.FailedAttempts != 2 {
		t.Fatalf("publication = %+v", p)
	}
	if p.Lag == nil || p.Lag.Std() != 14*time.Millisecond {
		t.Errorf("lag = %v, want 14 ms", p.Lag)
	}
	if len(story.Executions) != 1 {
		t.Fatalf("%d executions, want 1", len(story.Executions))
	}
	e := story.Executions[0]
	if e.State != "SUCCEEDED" || e.Executing.Std() != 1500*time.Millisecond || len(e.Tags) != 1 {
		t.Errorf("execution = %+v", e)
	}
	if len(e.Attempts) != 3 || len(e.Attempts[0].Steps) != 2 || len(e.Attempts[1].Steps) != 0 ||
		len(e.Attempts[2].Steps) != 2 {
		t.Fatalf("attempts = %+v, want 2, 0 and 2 steps", e.Attempts)
	}
	failed := e.Attempts[0].Steps[1]
	if failed.Code != "http_status" || failed.HTTPStatus != 500 || failed.Duration.Std() != 300*time.Millisecond {
		t.Errorf("failed step = %+v", failed)
	}
	want := []trace.EmittedEvent{{NodeID: "emit", EventID: childID, EventType: "OrderPosted", Status: "PENDING"}}
	if !slices.Equal(e.Emitted, want) {
		t.Errorf("emitted = %+v, want %+v", e.Emitted, want)
	}
}

func TestTheBackOffIsTheGapBetweenAttempts(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	publishedEvent(t, pool, "acme", eventID)
	execution(t, pool, "acme", "RETRY")
	step(t, pool, "notify", 1, "http-request", "FAILED", "timeout", 0, nil, "10:00:00.000", "10:00:01.000")
	step(t, pool, "notify", 2, "http-request", "FAILED", "timeout", 0, nil, "10:00:03.500", "10:00:04.000")
	attempts := load(t, pool, "").Executions[0].Attempts
	if attempts[0].BackOff == nil || attempts[0].BackOff.Std() != 2500*time.Millisecond {
		t.Errorf("back-off = %v, want 2.5s", attempts[0].BackOff)
	}
	if attempts[1].BackOff != nil {
		t.Errorf("back-off of the last attempt = %v, want none", attempts[1].BackOff)
	}
}

func TestOneIDInTwoOrgsNeedsTheOrg(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	publishedEvent(t, pool, "acme", eventID)
	publishedEvent(t, pool, "globex", eventID)
	var ambiguous *trace.AmbiguousError
	if _, err := trace.Load(t.Context(), pool, eventID, ""); !errors.As(err, &ambiguous) {
		t.Fatalf("Load without org = %v, want an AmbiguousError", err)
	}
	if !slices.Equal(ambiguous.OrgIDs, []string{"acme", "globex"}) {
		t.Errorf("OrgIDs = %v", ambiguous.OrgIDs)
	}
	if got := load(t, pool, "globex").Event.OrgID; got != "globex" {
		t.Errorf("org = %q, want globex", got)
	}
}

func TestOneOrgNeverSeesAnothersExecutions(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	publishedEvent(t, pool, "acme", eventID)
	execution(t, pool, "globex", "SUCCEEDED")
	deadLetter(t, pool, "globex", nil)
	story := load(t, pool, "acme")
	if len(story.Executions) != 0 || len(story.DeadLetters) != 0 {
		t.Errorf("acme sees %d executions and %d dead letters of globex", len(story.Executions), len(story.DeadLetters))
	}
	list, err := trace.Executions(t.Context(), pool, trace.Filter{Org: "acme", Limit: 10})
	if err != nil || len(list) != 0 {
		t.Errorf("acme's list = %+v, %v, want none", list, err)
	}
}

func TestAPrunedOutboxRowLeavesTheLedgersStory(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	execution(t, pool, "acme", "DEAD_LETTERED")
	deadLetter(t, pool, "acme", &executionID)
	exec(t, pool, `INSERT INTO relayops.event_payloads (org_id, event_id, envelope, payload)
		VALUES ('acme', $1, '{"causationId":"cause","eventVersion":3}', '{}')`, eventID)
	story := load(t, pool, "")
	if story.Publication != nil {
		t.Errorf("publication = %+v, want none", story.Publication)
	}
	if story.Event.Type != "OrderConfirmed" || story.Event.CausationID != "cause" || story.Event.Version != 3 {
		t.Errorf("event = %+v", story.Event)
	}
	if letter := story.Executions[0].DeadLetter; letter == nil || letter.ID != letterID {
		t.Errorf("dead letter = %+v", letter)
	}
	if len(story.DeadLetters) != 0 {
		t.Errorf("dead letters apart = %+v, want none", story.DeadLetters)
	}
}

func TestADeadLetterWithoutAnExecutionIsFound(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	deadLetter(t, pool, "acme", nil)
	if got := load(t, pool, "").DeadLetters; len(got) != 1 || got[0].Code != "permanent_error" {
		t.Errorf("dead letters = %+v", got)
	}
	letter, err := trace.DeadLetterByID(t.Context(), pool, letterID)
	if err != nil || letter == nil || letter.ID != letterID {
		t.Errorf("DeadLetterByID = %+v, %v", letter, err)
	}
	if letter, err := trace.DeadLetterByID(t.Context(), pool, eventID); err != nil || letter != nil {
		t.Errorf("DeadLetterByID of no letter = %+v, %v, want none", letter, err)
	}
}

func TestAnUnknownEventIsNotFound(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	var notFound *trace.NotFoundError
	if _, err := trace.Load(t.Context(), pool, eventID, "acme"); !errors.As(err, &notFound) || notFound.OrgID != "acme" {
		t.Errorf("Load = %v, want a NotFoundError of acme", err)
	}
}

func TestAMappedOutboxIsRead(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	exec(t, pool, `CREATE TABLE public."Events" ("id" text PRIMARY KEY, "orgId" text, "eventType" text, payload jsonb,
		"occurredAt" timestamp, status text, "availableAt" timestamp, attempts integer)`)
	exec(t, pool, `INSERT INTO public."Events" VALUES ($1, 'acme', 'OrderConfirmed', '{}', '2026-12-01 10:00', 'PENDING',
		'2026-12-01 10:00', 1)`, eventID.String())
	table := outbox.Table{Name: "Events", Columns: map[string]string{
		"event_id": "id", "org_id": "orgId", "event_type": "eventType", "occurred_at": "occurredAt",
		"available_at": "availableAt", "position": "", "event_version": "", "aggregate_type": "", "aggregate_id": "",
		"correlation_id": "", "causation_id": "", "payload_sha256": "", "headers": "", "created_at": "",
		"operation_version": "", "last_error": "", "published_at": "", "stream": "", "stream_seq": "",
	}}
	for _, org := range []string{"", "acme"} {
		story, err := trace.Load(t.Context(), pool, eventID, org, outbox.Table{}, table)
		if err != nil {
			t.Fatal(err)
		}
		if story.Publication.Table != "public.Events" || story.Publication.Status != "PENDING" ||
			!story.Event.OccurredAt.Equal(time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)) {
			t.Errorf("org %q: publication = %+v, event = %+v", org, story.Publication, story.Event)
		}
	}
}

func TestListsAreFilteredAndNewestFirst(t *testing.T) {
	pool := testenv.Pool(t, testenv.Database(t))
	for i, row := range []struct{ org, key, state string }{
		{"acme", "dev/default/order-post", "SUCCEEDED"},
		{"acme", "dev/default/invoice-post", "RETRY"},
		{"globex", "dev/default/order-post", "SUCCEEDED"},
		{"acme", "dev/default/order-post", "RETRY"},
		{"acme", "dev/default/reorder-post", "SUCCEEDED"},
	} {
		exec(t, pool, `INSERT INTO relayops.pipeline_executions (execution_id, org_id, pipeline_key, event_id,
			operation_version, event_type, payload_sha256, revision, state, occurred_at)
			VALUES ($4, $1, $2, gen_random_uuid(), 1, 'T', '\x00', 'r', $3, now())`,
			row.org, row.key, row.state, fmt.Sprintf("01a22fb7-0000-7000-8000-00000000000%d", i))
	}
	for _, test := range []struct {
		name   string
		filter trace.Filter
		want   []string
	}{
		{"all", trace.Filter{Limit: 10}, []string{"reorder-post", "order-post", "order-post", "invoice-post", "order-post"}},
		{"limit", trace.Filter{Limit: 2}, []string{"reorder-post", "order-post"}},
		{"org", trace.Filter{Org: "globex", Limit: 10}, []string{"order-post"}},
		{"state", trace.Filter{State: "RETRY", Limit: 10}, []string{"order-post", "invoice-post"}},
		{"pipeline name", trace.Filter{Pipeline: "order-post", Limit: 10}, []string{"order-post", "order-post", "order-post"}},
		{"pipeline key", trace.Filter{Pipeline: "dev/default/invoice-post", Limit: 10}, []string{"invoice-post"}},
		{"no wildcard", trace.Filter{Pipeline: "%", Limit: 10}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			rows, err := trace.Executions(t.Context(), pool, test.filter)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, row := range rows {
				got = append(got, row.PipelineKey[len("dev/default/"):])
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("pipelines = %v, want %v", got, test.want)
			}
		})
	}
	deadLetter(t, pool, "acme", nil)
	letters, err := trace.DeadLetters(t.Context(), pool, trace.Filter{Org: "acme", Code: "permanent_error", Limit: 5})
	if err != nil || len(letters) != 1 {
		t.Errorf("dead letters = %+v, %v", letters, err)
	}
}

func publishedEvent(t *testing.T, pool *pgxpool.Pool, org string, id uuid.UUID) {
	t.Helper()
	exec(t, pool, `INSERT INTO relayops.outbox_events (event_id, org_id, event_type, aggregate_type, aggregate_id,
		payload, headers, created_at, status, attempts, published_at, stream, stream_seq)
		VALUES ($1, $2, 'OrderConfirmed', 'Order', '1042', '{}',
		'{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}',
		'2026-12-01 10:00:00Z', 'PUBLISHED', 2, '2026-12-01 10:00:00.014Z', 'RELAYOPS', 42)`, id, org)
}

func execution(t *testing.T, pool *pgxpool.Pool, org, state string) {
	t.Helper()
	exec(t, pool, `INSERT INTO relayops.pipeline_executions (execution_id, org_id, pipeline_key, event_id,
		operation_version, event_type, payload_sha256, revision, state, attempt, occurred_at)
		VALUES ($1, $2, $3, $4, 1, 'OrderConfirmed', '\x00', 'abc', $5, 1, now())`,
		executionID, org, pipeline, eventID, state)
}

func step(t *testing.T, pool *pgxpool.Pool, node string, attempt int, nodeType, outcome, code string, status int,
	output any, from, to string,
) {
	t.Helper()
	exec(t, pool, `INSERT INTO relayops.step_executions (execution_id, node_id, attempt, node_type, outcome, code,
		http_status, output, fencing_token, started_at, finished_at, duration_us)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1, $9::timestamptz, $10::timestamptz,
		extract(epoch FROM $10::timestamptz - $9::timestamptz) * 1000000)`,
		executionID, node, attempt, nodeType, outcome, code, status, output, "2026-12-01 "+from+"Z", "2026-12-01 "+to+"Z")
}

func deadLetter(t *testing.T, pool *pgxpool.Pool, org string, execution *uuid.UUID) {
	t.Helper()
	exec(t, pool, `INSERT INTO relayops.dead_letters (dead_letter_id, org_id, pipeline_key, event_id, execution_id,
		event_type, code) VALUES ($1, $2, $3, $4, $5, 'OrderConfirmed', 'permanent_error')`,
		letterID, org, pipeline, eventID, execution)
}

func load(t *testing.T, pool *pgxpool.Pool, org string) trace.Story {
	t.Helper()
	story, err := trace.Load(t.Context(), pool, eventID, org)
	if err != nil {
		t.Fatal(err)
	}
	return story
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"pgregory.net/rapid"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/internal/outbox"
	"github.com/relayops/relayops/internal/runspec"
	"github.com/relayops/relayops/internal/stream"
)

func apiError(code jetstream.ErrorCode, description string) error {
	return fmt.Errorf("nats: %w", &jetstream.APIError{Code: 500, ErrorCode: code, Description: description})
}

func TestClassify(t *testing.T) {
	broker, ownFault := brokerWide, eventSpecific
	tests := []struct {
		name string
		err  error
		want verdict
	}{
		{"no connection", nats.ErrConnectionReconnecting, broker(ReasonBrokerUnreachable)},
		{"no buffer while away", nats.ErrReconnectBufExceeded, broker(ReasonBrokerUnreachable)},
		{"disconnected in flight", nats.ErrDisconnected, broker(ReasonBrokerUnreachable)},
		{"closed", nats.ErrConnectionClosed, broker(ReasonBrokerUnreachable)},
		{"stale", nats.ErrStaleConnection, broker(ReasonBrokerUnreachable)},
		{"network", &net.OpError{Op: "write", Err: errors.New("broken pipe")}, broker(ReasonBrokerUnreachable)},
		{"end of file", io.EOF, broker(ReasonBrokerUnreachable)},
		{"never seen", errors.New("something new"), broker(ReasonBrokerUnreachable)},
		{"given up before its turn", errNotSent, broker(ReasonBrokerUnreachable)},
		{"no responders", jetstream.ErrNoStreamResponse, broker(ReasonNoResponders)},
		{"no responders, request", nats.ErrNoResponders, broker(ReasonNoResponders)},
		{"JetStream off", jetstream.ErrJetStreamNotEnabled, broker(ReasonNoResponders)},
		{"no leader", apiError(10008, "JetStream system temporarily unavailable"), broker(ReasonNoResponders)},
		{"stream missing", jetstream.ErrStreamNotFound, broker(ReasonStreamMissing)},
		{"stream missing, answered", apiError(10059, "stream not found"), broker(ReasonStreamMissing)},
		{"stream full of bytes", apiError(10077, "maximum bytes exceeded"), broker(ReasonStreamFull)},
		{"stream full of messages", apiError(10077, "maximum messages exceeded"), broker(ReasonStreamFull)},
		{"broken disk", apiError(10077, "write: no space left on device"), broker(ReasonStorageFull)},
		{"account's storage used up", apiError(10002, "resource limits exceeded for account"), broker(ReasonStorageFull)},
		{"server's storage used up", apiError(10047, "insufficient storage resources available"), broker(ReasonStorageFull)},
		{"another stream expected", apiError(10060, "expected stream does not match"), broker(ReasonStreamConflict)},
		{"another stream answered", errForeignStream, broker(ReasonStreamConflict)},
		{"sealed", apiError(10109, "invalid operation on sealed stream"), broker(ReasonStreamConflict)},
		{"permission", fmt.Errorf("%w: publish", nats.ErrPermissionViolation), broker(ReasonUnauthorized)},
		{"credentials", nats.ErrAuthorization, broker(ReasonUnauthorized)},
		{"credentials expired", nats.ErrAuthExpired, broker(ReasonUnauthorized)},
		{"no answer", jetstream.ErrAsyncPublishTimeout, broker(ReasonPublishTimeout)},
		{"no answer, request", nats.ErrTimeout, broker(ReasonPublishTimeout)},
		{"lease nearly over", context.DeadlineExceeded, broker(ReasonPublishTimeout)},
		{"same id in process", apiError(10158, "duplicate message id is in process"), broker(ReasonBrokerBusy)},
		{"too many requests", apiError(10167, "too many requests"), broker(ReasonBrokerBusy)},
		{"no PubAck", jetstream.ErrInvalidJSAck, broker(ReasonBrokerRefused)},
		{"too large for the server", nats.ErrMaxPayload, ownFault(outbox.CodeMessageTooLarge)},
		{"too large for the stream", apiError(10054, "message size exceeds maximum allowed"), ownFault(outbox.CodeMessageTooLarge)},
		{"headers too large", apiError(10097, "header size exceeds maximum allowed of 64k"), ownFault(outbox.CodeHeadersTooLarge)},
		{"bad subject", nats.ErrBadSubject, ownFault(outbox.CodeBadSubject)},
		{"invalid row", &event.ValidationError{}, ownFault(outbox.CodeInvalidEvent)},
		{"no free id", errIDTaken, ownFault(outbox.CodeMessageIDTaken)},
		{"unknown answer", apiError(19999, "new in 3.0"), verdict{scopeUnknown, ReasonBrokerRefused, outbox.CodeRefused}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := classify(test.err); got != test.want {
				t.Errorf("classify(%v) = %+v, want %+v", test.err, got, test.want)
			}
		})
	}
}

func TestClassifyEnsure(t *testing.T) {
	for want, errs := range map[Reason][]error{
		ReasonStreamConflict: {&stream.OwnedByOtherError{}, &stream.ConflictError{}, &stream.OverlapError{}},
		ReasonBrokerTooOld:   {&stream.VersionError{}},
		ReasonNoResponders:   {context.DeadlineExceeded, jetstream.ErrJetStreamNotEnabled},
		ReasonStorageFull:    {apiError(10047, "insufficient storage resources available")},
		ReasonBrokerRefused:  {apiError(10052, "new in 3.0")},
	} {
		for _, err := range errs {
			if got := classifyEnsure(fmt.Errorf("ensure: %w", err)); got != want {
				t.Errorf("%v: %s, want %s", err, got, want)
			}
		}
	}
}

func TestClassifyDatabase(t *testing.T) {
	refused := func(code string) error { return fmt.Errorf("claim: %w", &pgconn.PgError{Code: code}) }
	for want, errs := range map[Reason][]error{
		"":                         {outbox.ErrClaimLost, refused("25P03"), refused("57014"), refused("40P01")},
		ReasonDatabaseUnauthorized: {refused("28P01"), refused("42501"), refused("25006")},
		ReasonDatabaseFull:         {refused("53100")},
		ReasonSchemaNotReady:       {refused("42P01"), refused("3F000"), refused("42703")},
		ReasonDatabaseUnreachable:  {refused("57P01"), refused("53300"), io.EOF, context.DeadlineExceeded},
	} {
		for _, err := range errs {
			if got := classifyDatabase(err); got != want {
				t.Errorf("%v: %q, want %q", err, got, want)
			}
		}
	}
}

func specification() *runspec.Relay {
	second := runspec.Duration(time.Second)
	return &runspec.Relay{
		MaxAttempts: 3, BackOff: runspec.BackOff{Initial: second, Max: 60 * second, Multiplier: 2, Jitter: 0.5},
		Stream: runspec.Stream{Name: "EVENTS"},
	}
}

func half() float64 { return 0.5 }

// No error that is not the event's own marks a row.
func TestJudgeMarksNothingForBrokerErrors(t *testing.T) {
	rows := make([]outbox.Row, 3)
	outcomes := []outcome{{sequence: 7}, {err: nats.ErrConnectionClosed}, {err: errNotSent}}
	j := judge(rows, outcomes, specification(), half)
	if len(j.marks.Published) != 1 || j.marks.Published[0].Sequence != 7 || len(j.marks.Failed) != 0 {
		t.Errorf("marks: %+v", j.marks)
	}
	if j.pause != ReasonBrokerUnreachable || !errors.Is(j.err, nats.ErrConnectionClosed) {
		t.Errorf("pause %q for %v", j.pause, j.err)
	}
}

// An answer that RelayOps does not know pauses if all events met it, and counts if others got through.
func TestJudgeUnknownAnswers(t *testing.T) {
	unknown := outcome{err: apiError(19999, "new")}
	j := judge(make([]outbox.Row, 2), []outcome{unknown, unknown}, specification(), half)
	if j.pause != ReasonBrokerRefused || len(j.marks.Failed) != 0 {
		t.Errorf("all refused: pause %q, %d failed", j.pause, len(j.marks.Failed))
	}
	j = judge(make([]outbox.Row, 2), []outcome{unknown, {sequence: 1}}, specification(), half)
	if j.pause != "" || len(j.marks.Failed) != 1 || j.marks.Failed[0].Code != outbox.CodeRefused {
		t.Errorf("one refused: pause %q, failed %+v", j.pause, j.marks.Failed)
	}
}

func TestJudgeCountsAttempts(t *testing.T) {
	for attempts, final := range map[int32]bool{0: false, 1: false, 2: true, 9: true} {
		rows := []outbox.Row{{Attempts: attempts}}
		j := judge(rows, []outcome{{err: nats.ErrMaxPayload}}, specification(), half)
		if len(j.marks.Failed) != 1 || j.marks.Failed[0].Final != final {
			t.Errorf("after %d attempts: %+v, want final %t", attempts, j.marks.Failed, final)
		}
	}
}

func TestRetryDelay(t *testing.T) {
	policy := specification().BackOff
	for failures, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 7: time.Minute, 1000: time.Minute,
	} {
		if got := retryDelay(policy, failures, 0.5); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		policy := runspec.BackOff{
			Initial:    runspec.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "initial")),
			Multiplier: rapid.Float64Range(1, 10).Draw(t, "multiplier"), Jitter: rapid.Float64Range(0, 1).Draw(t, "jitter"),
		}
		policy.Max = policy.Initial + runspec.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "more"))
		failures := rapid.IntRange(1, 1000).Draw(t, "failures")
		delay := retryDelay(policy, failures, rapid.Float64Range(0, 0.999).Draw(t, "random"))
		low := time.Duration(float64(policy.Initial) * (1 - policy.Jitter))
		high := time.Duration(float64(policy.Max) * (1 + policy.Jitter))
		if delay < low-1 || delay > high+1 {
			t.Fatalf("delay %s is not within %s and %s", delay, low, high)
		}
	})
}

func TestSameEvent(t *testing.T) {
	d := &event.Delivery{
		Envelope: event.Envelope{
			ID: uuid.New(), OrgID: "a b", EventType: "T", EventVersion: 1, OccurredAt: time.Now(), Payload: []byte("1"),
		},
		OperationVersion: 1, PayloadSHA256: event.PayloadHash([]byte("1")),
	}
	m := newMessenger("k", "events", "S", false)
	wanted := m.message(d, "any")
	if !sameEvent(m.message(d, "other id").Header, wanted) {
		t.Error("the same event under another message id is not the same")
	}
	for name, change := range map[string]func(d *event.Delivery){
		"event id":          func(d *event.Delivery) { d.ID = uuid.New() },
		"org":               func(d *event.Delivery) { d.OrgID = "a%20b" },
		"payload":           func(d *event.Delivery) { d.PayloadSHA256[0]++ },
		"operation version": func(d *event.Delivery) { d.OperationVersion++ },
		"pipeline":          func(d *event.Delivery) { d.PipelineKey = "p" },
	} {
		other := *d
		change(&other)
		if sameEvent(m.message(&other, "any").Header, wanted) {
			t.Errorf("another %s is the same event", name)
		}
	}
	if sameEvent(nil, wanted) {
		t.Error("no headers are the same event")
	}
}

func TestValidateNamesEachField(t *testing.T) {
	err := validate(&runspec.Relay{})
	if err == nil {
		t.Fatal("the empty specification is valid")
	}
	for _, field := range []string{
		"key", "stream.name", "stream.subjectPrefix", "stream.instanceKey", "stream.replicas", "pollInterval", "batchSize",
		"claimers", "maxAttempts", "publishTimeout", "claimLease", "backOff",
	} {
		if !slices.ContainsFunc(splitLines(err), func(line string) bool { return line[:min(len(line), len(field)+1)] == field+":" }) {
			t.Errorf("field %s is not named in: %v", field, err)
		}
	}
	w := worldSpec()
	if err := validate(&w); err != nil {
		t.Errorf("a good specification: %v", err)
	}
	w.Stream.DuplicateWindow = w.ClaimLease
	if err := validate(&w); err == nil {
		t.Error("a duplicate window that is too short is accepted")
	}
}

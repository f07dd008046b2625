package trace

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/relayops/relayops/internal/engine"
)

// Story is everything that is known of one event.
type Story struct {
	Event Event `json:"event"`
	// Publication is nil where no outbox has a row of the event any more.
	Publication *Publication `json:"publication,omitempty"`
	// Executions are in the order of their creation.
	Executions []Execution `json:"executions"`
	// DeadLetters are those without an execution, such as an event that a worker could not decode.
	DeadLetters []DeadLetter `json:"deadLetters,omitempty"`
}

// Event is an event's envelope without its payload.
type Event struct {
	ID            uuid.UUID `json:"id"`
	OrgID         string    `json:"orgId"`
	Type          string    `json:"eventType"`
	Version       int32     `json:"eventVersion,omitempty"`
	AggregateType string    `json:"aggregateType,omitempty"`
	AggregateID   string    `json:"aggregateId,omitempty"`
	CorrelationID string    `json:"correlationId,omitempty"`
	CausationID   string    `json:"causationId,omitempty"`
	TraceParent   string    `json:"traceParent,omitempty"`
	// OccurredAt is by the application's clock; nil where only a dead letter knows of the event.
	OccurredAt *time.Time `json:"occurredAt,omitempty"`
	// CommittedAt is when the row was written, by the database's clock; nil where the outbox does not say.
	CommittedAt *time.Time `json:"committedAt,omitempty"`
}

// TraceID is the trace id in the event's W3C traceparent, empty for none.
func (e Event) TraceID() string {
	parts := strings.Split(e.TraceParent, "-")
	if len(parts) < 4 || len(parts[1]) != 32 {
		return ""
	}
	return parts[1]
}

// Publication is how an event got from the outbox to the stream.
type Publication struct {
	// Table is the outbox table, such as relayops.outbox_events.
	Table string `json:"table"`
	// Status is PENDING, PUBLISHED or FAILED.
	Status string `json:"status"`
	// FailedAttempts counts failures of this event alone: an outage counts for none.
	FailedAttempts int32 `json:"failedAttempts"`
	// LastError is the code of the last of them.
	LastError   string     `json:"lastError,omitempty"`
	AvailableAt *time.Time `json:"availableAt,omitempty"`
	PublishedAt *time.Time `json:"publishedAt,omitempty"`
	Stream      string     `json:"stream,omitempty"`
	StreamSeq   int64      `json:"streamSeq,omitempty"`
	// Lag is from the commit to the broker's acknowledgement; nil where one of the two is not known.
	Lag *Milliseconds `json:"lagMs,omitempty"`
}

// Execution is one row of the ledger.
type Execution struct {
	ID               uuid.UUID `json:"executionId"`
	OrgID            string    `json:"orgId"`
	PipelineKey      string    `json:"pipelineKey"`
	EventID          uuid.UUID `json:"eventId"`
	EventType        string    `json:"eventType"`
	OperationVersion int32     `json:"operationVersion"`
	Revision         string    `json:"revision"`
	// State is RUNNING, RETRY, SUCCEEDED, DEAD_LETTERED or CANCELLED.
	State string `json:"state"`
	// Attempt is the number of the last one, 0 if none began.
	Attempt int32 `json:"attempt"`
	// Code says why the last attempt failed, empty if none did.
	Code string `json:"code,omitempty"`
	// Executing is the time spent executing, waits not counted.
	Executing  Milliseconds `json:"executingMs"`
	CreatedAt  time.Time    `json:"createdAt"`
	StartedAt  *time.Time   `json:"startedAt,omitempty"`
	FinishedAt *time.Time   `json:"finishedAt,omitempty"`
	// DueAt is when a waiting execution goes on, LeaseUntil how long a running one is held by LeaseOwner.
	DueAt      *time.Time         `json:"dueAt,omitempty"`
	DeadlineAt *time.Time         `json:"deadlineAt,omitempty"`
	LeaseOwner string             `json:"leaseOwner,omitempty"`
	LeaseUntil *time.Time         `json:"leaseUntil,omitempty"`
	Tags       []engine.StatusTag `json:"statusTags,omitempty"`
	// Attempts, Emitted and DeadLetter are filled in a Story only.
	Attempts   []Attempt      `json:"attempts,omitempty"`
	Emitted    []EmittedEvent `json:"emitted,omitempty"`
	DeadLetter *DeadLetter    `json:"deadLetter,omitempty"`
}

// Attempt is one attempt of an execution, as its steps tell.
type Attempt struct {
	Number int32 `json:"attempt"`
	// Steps that were recorded; none for an attempt that ended before its first step.
	Steps []Step `json:"steps"`
	// BackOff is the wait before the next attempt's first step; nil for the last attempt, or where steps are missing.
	BackOff *Milliseconds `json:"backOffMs,omitempty"`
}

// Step is one recorded step.
type Step struct {
	NodeID     string       `json:"nodeId"`
	NodeType   string       `json:"nodeType"`
	Outcome    string       `json:"outcome"`
	Branch     string       `json:"branch,omitempty"`
	Code       string       `json:"code,omitempty"`
	HTTPStatus int32        `json:"httpStatus,omitempty"`
	StartedAt  time.Time    `json:"startedAt"`
	FinishedAt time.Time    `json:"finishedAt"`
	Duration   Milliseconds `json:"durationMs"`
}

// EmittedEvent is an event that an emit-event step of an execution wrote.
type EmittedEvent struct {
	NodeID    string    `json:"nodeId"`
	EventID   uuid.UUID `json:"eventId"`
	EventType string    `json:"eventType"`
	// Status of its outbox row, empty where there is none any more.
	Status string `json:"status,omitempty"`
}

// DeadLetter is one row of the dead letters.
type DeadLetter struct {
	ID               uuid.UUID  `json:"deadLetterId"`
	OrgID            string     `json:"orgId"`
	PipelineKey      string     `json:"pipelineKey"`
	EventID          *uuid.UUID `json:"eventId,omitempty"`
	EventType        string     `json:"eventType,omitempty"`
	OperationVersion int32      `json:"operationVersion,omitempty"`
	ExecutionID      *uuid.UUID `json:"executionId,omitempty"`
	Code             string     `json:"code"`
	NodeID           string     `json:"nodeId,omitempty"`
	HTTPStatus       int32      `json:"httpStatus,omitempty"`
	Attempt          int32      `json:"attempt,omitempty"`
	Stream           string     `json:"stream,omitempty"`
	StreamSeq        int64      `json:"streamSeq,omitempty"`
	CreatedAt        time.Time  `json:"createdAt"`
}

// Milliseconds is a duration that JSON shows as a number of milliseconds, with microseconds as its fraction.
type Milliseconds time.Duration

// Std is the duration as a time.Duration.
func (m Milliseconds) Std() time.Duration { return time.Duration(m) }

// MarshalJSON implements json.Marshaler.
func (m Milliseconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(float64(time.Duration(m).Microseconds()) / 1000)
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Milliseconds) UnmarshalJSON(raw []byte) error {
	var number float64
	if err := json.Unmarshal(raw, &number); err != nil {
		return fmt.Errorf("milliseconds: %w", err)
	}
	*m = Milliseconds(math.Round(number*1000) * float64(time.Microsecond))
	return nil
}

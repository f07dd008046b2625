package execution

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	outboxstore "github.com/relayops/relayops/internal/outbox"
)

// State of an execution, as its row has it.
type State string

// The states. RETRY rows wait until they are due: after a failure, a hand-back, or a recovery by the sweep.
const (
	Running      State = "RUNNING"
	Retry        State = "RETRY"
	Succeeded    State = "SUCCEEDED"
	DeadLettered State = "DEAD_LETTERED"
	Cancelled    State = "CANCELLED"
)

// Terminal reports whether nothing comes after the state.
func (s State) Terminal() bool { return s != Running && s != Retry }

// EventWriter writes the events that a step emitted, in the transaction that records the step. A refusal of the events
// themselves wraps outbox.ErrPayloadConflict or event.ErrInvalid.
type EventWriter interface {
	Write(ctx context.Context, tx pgx.Tx, events ...event.Envelope) error
}

// Config is what a ledger needs to know of the one pipeline that it serves.
type Config struct {
	PipelineKey string
	// Owner names this worker, for the reader of the rows that it leases.
	Owner string
	// MaxAttempts, 1 or more, and Lease, as in runspec.Worker.
	MaxAttempts int
	Lease       time.Duration
	// Deadline is how long after its event occurred an execution may still be claimed; 0: for ever. A row keeps the
	// deadline that it was made with.
	Deadline time.Duration
	// Table is where the outbox is.
	Table outbox.Table
	// Events writes emitted events.
	Events EventWriter
	// StatementTimeout bounds the wait for one answer of the database; 0 means 10 s. What it cuts off is asked for
	// again, and is not lost.
	StatementTimeout time.Duration
	// SearchTime bounds the search for where a subscription from a time begins; 0 means 5 min.
	SearchTime time.Duration
	// Observe is told of each try that the database did not answer, and with nil of each one that it did. It is called
	// from many goroutines and returns at once. Nil: nobody listens.
	Observe func(outage error)
}

// Ledger is one pipeline's view of the executions. It may be used from many goroutines.
type Ledger struct {
	pool   *pgxpool.Pool
	config Config
	names  *nonces
	outbox *outboxstore.Store
	// keeps is the statement part that stores an envelope; it depends on the table.
	keeps string
}

// New makes a ledger over a pool. Nothing is asked of the database; the error is that of a table mapping that cannot
// be.
func New(pool *pgxpool.Pool, config Config) (*Ledger, error) {
	store, err := outboxstore.New(config.Table)
	if err != nil {
		return nil, err
	}
	if config.StatementTimeout <= 0 {
		config.StatementTimeout = 10 * time.Second
	}
	if config.SearchTime <= 0 {
		config.SearchTime = searchTime
	}
	if config.Observe == nil {
		config.Observe = func(error) {}
	}
	return &Ledger{
		pool: pool, config: config, names: newNonces(config.Owner), outbox: store, keeps: keepSQL(config.Table),
	}, nil
}

// Lease is the right to record one attempt of one execution.
type Lease struct {
	ExecutionID uuid.UUID
	// Token is the fencing token of the claim.
	Token int64
	// Attempt is the attempt's number; step rows carry it.
	Attempt int
}

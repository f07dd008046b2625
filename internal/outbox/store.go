package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/relayops/relayops/api/event"
	table "github.com/relayops/relayops/api/outbox"
)

// ErrNotFound says that the outbox has no row of the org and event id.
var ErrNotFound = errors.New("the outbox has no such event")

// CountLimit is where the counts of a [Backlog] stop: beyond it, a count costs more than it tells.
const CountLimit = 10_000

// Querier is a pool, a connection or a transaction.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Store is the outbox in one table. It holds no connection and is safe for concurrent use.
type Store struct {
	table table.Table
	sql   statements
}

// New makes the store of a table; the error names every mistake of the mapping. Whether the table is as mapped is for
// internal/schema to check.
func New(t table.Table) (*Store, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return &Store{table: t, sql: newStatements(t)}, nil
}

// Backlog is what waits in the outbox. Counts stop at [CountLimit].
type Backlog struct {
	// Due rows can be claimed now, or are claimed and not marked yet; Waiting rows are in back-off or were meant for
	// later.
	Due, Waiting int64
	// OldestDue is how long the oldest due row has been due.
	OldestDue time.Duration
	// Failed rows used up their attempts; 0 if they were not counted.
	Failed int64
}

// Backlog asks, in one query, what waits. Failed rows are counted only on demand: a mapped table may have no index for
// them.
func (s *Store) Backlog(ctx context.Context, db Querier, countFailed bool) (Backlog, error) {
	var b Backlog
	var oldest int64
	err := db.QueryRow(ctx, s.sql.backlog, CountLimit, countFailed).Scan(&b.Due, &b.Waiting, &oldest, &b.Failed)
	if err != nil {
		return Backlog{}, fmt.Errorf("read the backlog of %s: %w", s.table, err)
	}
	b.OldestDue = time.Duration(oldest) * time.Microsecond
	return b, nil
}

// Get reads one event of one org, with its payload whatever its size. Without such a row it is [ErrNotFound]; a row
// that is no valid event is an error that wraps event.ErrInvalid.
func (s *Store) Get(ctx context.Context, db Querier, org string, id uuid.UUID) (*event.Delivery, error) {
	var row scanned
	err := db.QueryRow(ctx, s.sql.get, org, id.String()).Scan(append(row.envelope(), &row.body, &row.hash)...)
	if errors.Is(err, pgx.ErrNoRows) || notOfThisType(err) {
		return nil, fmt.Errorf("event %s of org %q: %w", id, org, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("read event %s of org %q from %s: %w", id, org, s.table, err)
	}
	row.bytes = int32(min(len(row.body), event.MaxPayloadBytes+1))
	delivery, err := row.delivery(!s.table.Mapped())
	if err != nil {
		return nil, fmt.Errorf("event %s of org %q in %s: %w", id, org, s.table, err)
	}
	return &delivery, nil
}

// notOfThisType reports whether the server could not read a key as the column's type: a mapped table whose orgs are
// UUIDs has no row of an org that is none.
func notOfThisType(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "22P02"
}

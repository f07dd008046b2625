package outbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/internal/crashpoint"
)

// ErrClaimLost says that fewer rows could be marked than were claimed: the claim was no longer this one's. Nothing was
// written.
var ErrClaimLost = errors.New("the claim was lost")

// endTimeout bounds the giving back of a claim.
const endTimeout = 2 * time.Second

// maxPreallocated is how many rows' room is made at once.
const maxPreallocated = 512

// Request says what to claim.
type Request struct {
	// Limit is the most rows, 1 or more.
	Limit int
	// MaxBytes bounds the payloads that are read, in bytes; one row is read whatever its size.
	MaxBytes int
	// InlineBytes: a larger payload is not read; the row's delivery gets a PayloadRef.
	InlineBytes int
	// Lease is after how long of silence the server ends the claim, at least 1 ms.
	Lease time.Duration
}

// Claim is a transaction that holds rows. Exactly one of Settle and Release ends it; Release after Settle does nothing.
type Claim struct {
	// Rows are the claimed rows, oldest first; none if nothing is due.
	Rows []Row
	// Full: there may be more due rows than these.
	Full bool
	// Bytes is the size of the payloads in Rows.
	Bytes int

	store *Store
	conn  *pgxpool.Conn
}

// Claim locks due rows. The server gives them back after request.Lease without a word from this side. The error is that
// of the database; nothing is held then.
func (s *Store) Claim(ctx context.Context, pool *pgxpool.Pool, request Request) (*Claim, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("claim from %s: %w", s.table, err)
	}
	claim := &Claim{store: s, conn: conn}
	if err := claim.begin(ctx, request); err != nil {
		claim.Release(ctx)
		return nil, fmt.Errorf("claim from %s: %w", s.table, err)
	}
	return claim, nil
}

// begin is one round trip: BEGIN, the lease, and the rows.
func (c *Claim) begin(ctx context.Context, request Request) error {
	lease := strconv.FormatInt(max(request.Lease.Milliseconds(), 1), 10)
	batch := &pgx.Batch{}
	batch.Queue("BEGIN")
	batch.Queue("SELECT set_config('idle_in_transaction_session_timeout', $1, true), "+
		"set_config('statement_timeout', $1, true)", lease)
	batch.Queue(c.store.sql.claim, request.Limit, request.InlineBytes)
	results := c.conn.SendBatch(ctx, batch)
	err := c.read(results, request)
	return errors.Join(err, results.Close())
}

func (c *Claim) read(results pgx.BatchResults, request Request) error {
	for range 2 {
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	var s scanned
	targets := append(append([]any{&s.place}, s.envelope()...), &s.bytes, &s.body, &s.hash)
	locked := 0
	for rows.Next() {
		locked++
		if c.Bytes >= request.MaxBytes {
			continue // Locked, not read: this claim's end gives it back.
		}
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		if c.Bytes += len(s.body); c.Bytes > request.MaxBytes && len(c.Rows) > 0 {
			c.Bytes = request.MaxBytes
			continue
		}
		if c.Rows == nil {
			c.Rows = make([]Row, 0, min(request.Limit, maxPreallocated))
		}
		c.Rows = append(c.Rows, s.row(!c.store.table.Mapped()))
	}
	c.Full = locked == request.Limit || locked > len(c.Rows)
	return rows.Err()
}

// Marks say what became of the rows of a claim. A row in none of the lists is given back as it was.
type Marks struct {
	// Stream is where the Published rows are.
	Stream    string
	Published []Published
	Failed    []Failed
}

// Published is a row that the broker acknowledged.
type Published struct {
	Row      *Row
	Sequence uint64
}

// Failed is a row that could not be published by its own fault.
type Failed struct {
	Row  *Row
	Code Code
	// Final: its attempts are used up. Else it is due again after RetryIn.
	Final   bool
	RetryIn time.Duration
}

// Settle marks the rows and commits. On an error nothing is known to be written, and the claim is over; after an
// error of the commit itself the database may have it or not, which the next claim of the rows finds out.
func (c *Claim) Settle(ctx context.Context, marks Marks) error {
	defer c.Release(ctx)
	if err := c.mark(ctx, marks); err != nil {
		return fmt.Errorf("mark %d rows of %s: %w", len(marks.Published)+len(marks.Failed), c.store.table, err)
	}
	crashpoint.Here(crashpoint.BeforeClaimCommit)
	tag, err := c.conn.Exec(ctx, "COMMIT")
	if err == nil && tag.String() != "COMMIT" {
		err = ErrClaimLost // A COMMIT without a transaction is only a warning to PostgreSQL.
	}
	if err != nil {
		return fmt.Errorf("commit %d rows of %s: %w", len(marks.Published)+len(marks.Failed), c.store.table, err)
	}
	return nil
}

func (c *Claim) mark(ctx context.Context, marks Marks) error {
	batch := &pgx.Batch{}
	expected := make([]int, 0, 3)
	queue := func(count int, sql string, arguments ...any) {
		if count > 0 {
			batch.Queue(sql, arguments...)
			expected = append(expected, count)
		}
	}
	published, sequences := newKeys(len(marks.Published)), make([]int64, 0, len(marks.Published))
	for _, mark := range marks.Published {
		published.add(mark.Row)
		sequences = append(sequences, int64(mark.Sequence))
	}
	queue(len(sequences), c.store.sql.markPublished,
		published.places, published.orgs, published.ids, marks.Stream, sequences)

	retry, final := newKeys(len(marks.Failed)), newKeys(len(marks.Failed))
	var retryCodes, finalCodes []string
	var delays []int64
	for _, mark := range marks.Failed {
		if mark.Final {
			final.add(mark.Row)
			finalCodes = append(finalCodes, string(mark.Code))
			continue
		}
		retry.add(mark.Row)
		retryCodes = append(retryCodes, string(mark.Code))
		delays = append(delays, mark.RetryIn.Microseconds())
	}
	queue(len(delays), c.store.sql.markRetry, retry.places, retry.orgs, retry.ids, retryCodes, delays)
	queue(len(finalCodes), c.store.sql.markFailed, final.places, final.orgs, final.ids, finalCodes)
	if len(expected) == 0 {
		return nil
	}
	results := c.conn.SendBatch(ctx, batch)
	var err error
	for _, count := range expected {
		tag, execErr := results.Exec()
		if execErr == nil && tag.RowsAffected() != int64(count) {
			execErr = fmt.Errorf("%w: %d rows claimed, %d marked", ErrClaimLost, count, tag.RowsAffected())
		}
		err = errors.Join(err, execErr)
	}
	return errors.Join(err, results.Close())
}

// Release gives the rows back as they were, unless Settle has ended the claim. It works after ctx has ended.
func (c *Claim) Release(ctx context.Context) {
	if c.conn == nil {
		return
	}
	pg := c.conn.Conn().PgConn()
	if !pg.IsClosed() && pg.TxStatus() != 'I' {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		// If this fails the connection is closed, which gives the rows back as well.
		_, _ = c.conn.Exec(ending, "ROLLBACK")
		cancel()
	}
	c.conn.Release()
	c.conn = nil
}

// keys are the columns by which marks find their rows.
type keys struct {
	places    []pgtype.TID
	orgs, ids []string
}

func newKeys(capacity int) *keys {
	return &keys{
		places: make([]pgtype.TID, 0, capacity), orgs: make([]string, 0, capacity), ids: make([]string, 0, capacity),
	}
}

func (k *keys) add(row *Row) {
	k.places = append(k.places, row.place)
	k.orgs = append(k.orgs, row.org)
	k.ids = append(k.ids, row.id)
}

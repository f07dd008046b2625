package execution

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// commitError is a COMMIT that was sent and not answered as it should be.
type commitError struct{ err error }

func (c *commitError) Error() string { return "commit: " + c.err.Error() }
func (c *commitError) Unwrap() error { return c.err }

// rollbackTime bounds the goodbye to a transaction that is given up.
const rollbackTime = 2 * time.Second

// inTransaction runs work in a transaction and commits it. It is not pgx.BeginFunc, because that one shows the failure
// of its own ROLLBACK in place of the COMMIT's: a commit whose answer was lost would look like one that surely did
// nothing.
func (l *Ledger) inTransaction(ctx context.Context, work func(tx pgx.Tx) error) error {
	tx, err := l.pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := work(tx); err != nil {
		goodbye, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
		defer cancel()
		_ = tx.Rollback(goodbye) // Without a COMMIT nothing stays, whatever becomes of the ROLLBACK.
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return &commitError{err}
	}
	return nil
}

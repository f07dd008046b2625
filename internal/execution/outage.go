package execution

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
)

// ErrLeaseLost says: the execution is no longer RUNNING under the token. Nothing was recorded, and nothing may be.
var ErrLeaseLost = errors.New("lease lost")

// ErrUnavailable says: the database did not answer, and it is settled that nothing was done, or the caller's context
// ended the wait for the answer. It says nothing about the event.
var ErrUnavailable = errors.New("database unavailable")

// ErrRefused says: the database refused the record itself, such as a value that it cannot hold. Asking again will not
// help.
var ErrRefused = errors.New("record refused by the database")

// answer is what a try told us.
type answer int

const (
	// answered: done, or refused for good.
	answered answer = iota
	// notDone: the statement did nothing for a reason that is not its own.
	notDone
	// unknown: it may have been committed.
	unknown
)

// classify tells what an error of a try means. When in doubt the answer is unknown: that costs one more look.
func classify(err error) answer {
	for _, ours := range []error{ErrLeaseLost, ErrRefused, ErrNoEvent, outbox.ErrPayloadConflict, event.ErrInvalid} {
		if errors.Is(err, ours) {
			return answered
		}
	}
	if err == nil {
		return answered
	}
	var refused *pgconn.PgError
	var committing *commitError
	if errors.As(err, &committing) && !errors.As(err, &refused) && !errors.Is(err, pgx.ErrTxCommitRollback) {
		return unknown
	}
	var connecting *pgconn.ConnectError
	if pgconn.SafeToRetry(err) || errors.As(err, &connecting) {
		return notDone
	}
	if errors.As(err, &refused) {
		switch {
		case aboutTheRecord(refused.Code):
			return answered
		case strings.HasPrefix(refused.Code, "57P"), strings.HasPrefix(refused.Code, "08"):
			// The server ended the session: before or after the commit, it does not say.
			return unknown
		default:
			return notDone
		}
	}
	return unknown
}

// aboutTheRecord: data exception, integrity constraint, program limit.
func aboutTheRecord(sqlState string) bool {
	return strings.HasPrefix(sqlState, "22") || strings.HasPrefix(sqlState, "23") || strings.HasPrefix(sqlState, "54")
}

// Waits between tries.
const (
	firstPause = 50 * time.Millisecond
	longPause  = time.Second
)

// settle repeats try until the database has answered. again says that a former try may have been committed, so that
// the try has to look first. A try in hand is not cut off by ctx, only by the statement timeout: its answer is worth
// more than a moment.
//
// With giveUp a try that surely did nothing ends it with ErrUnavailable; without, only the end of ctx does.
func (l *Ledger) settle(ctx context.Context, what string, giveUp bool,
	try func(ctx context.Context, again bool) error,
) error {
	again := false
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		if err := ctx.Err(); err != nil && !again {
			return fmt.Errorf("%s: %w: %w", what, ErrUnavailable, context.Cause(ctx))
		}
		tryCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.config.StatementTimeout)
		err := try(tryCtx, again)
		cancel()
		meaning := classify(err)
		if meaning == answered {
			l.config.Observe(nil)
			return named(what, err)
		}
		l.config.Observe(fmt.Errorf("%s: %w", what, err))
		if meaning == notDone && giveUp && !again {
			return fmt.Errorf("%s: %w: %w", what, ErrUnavailable, err)
		}
		again = again || meaning == unknown
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, ErrUnavailable, err)
		case <-time.After(pause):
		}
	}
}

// named says what failed, and marks refusals.
func named(what string, err error) error {
	if err == nil {
		return nil
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) && !errors.Is(err, outbox.ErrPayloadConflict) && !errors.Is(err, event.ErrInvalid) {
		return fmt.Errorf("%s: %w: %w", what, ErrRefused, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

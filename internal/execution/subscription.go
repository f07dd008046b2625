package execution

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Start says where a subscription that is made now begins.
type Start string

// The starts.
const (
	// FromNow: with the events that are inserted from now on.
	FromNow Start = "Now"
	// FromBeginning: with everything that the stream has.
	FromBeginning Start = "Beginning"
	// FromTime: with the events that were inserted at StartTime or later.
	FromTime Start = "Time"
)

// NewSubscription is a subscription as its first worker makes it.
type NewSubscription struct {
	Trigger   string
	Orgs      []string
	Start     Start
	StartTime time.Time
	// Stream and StartSeq are where the consumer begins: at or before the first event that the subscription has.
	// StartSeq was read before Register is called, of the stream's Incarnation.
	Stream      string
	StartSeq    uint64
	Incarnation time.Time
}

// Subscription is a pipeline's subscription as it is recorded.
type Subscription struct {
	// FromPosition is the outbox position of the first event; 0: the consumer's start alone counts.
	FromPosition int64
	// UntilPosition is the position after the last event; 0: none.
	UntilPosition int64
	Stream        string
	// Incarnation is when the stream was made, in UTC and to the microsecond: the sequences count within it.
	Incarnation time.Time
	StartSeq    uint64
	// SweptSeq: every message of the stream up to here is accounted for.
	SweptSeq uint64
	// Made reports whether Register made it just now.
	Made bool
}

const subscriptionColumns = `from_position, coalesce(until_position, 0), stream, stream_incarnation,
  start_seq, swept_seq`

// Register makes the pipeline's subscription, or gives the one that is there: where it begins is decided once.
// Trigger and orgs are kept up to date, for the reader. Its errors are [ErrUnavailable] and [ErrRefused].
func (l *Ledger) Register(ctx context.Context, wanted NewSubscription) (Subscription, error) {
	found, err := l.Subscription(ctx)
	if err == nil && found == nil {
		if err = l.makeSubscription(ctx, &wanted); err == nil {
			found, err = l.Subscription(ctx)
		}
		if found != nil {
			found.Made = true
		}
	}
	if err != nil {
		return Subscription{}, err
	}
	if found == nil {
		return Subscription{}, fmt.Errorf("register the subscription: %w: it was deleted at once", ErrUnavailable)
	}
	return *found, l.describeSubscription(ctx, &wanted)
}

func (l *Ledger) makeSubscription(ctx context.Context, wanted *NewSubscription) error {
	from := l.nextPosition()
	if wanted.Start == FromBeginning {
		from = "0"
	}
	arguments := l.subscriptionArguments(wanted)
	if wanted.Start == FromTime {
		first, err := l.firstPositionSince(ctx, wanted.StartTime)
		if err != nil {
			return err
		}
		from, arguments["first"] = "@first::bigint", first
	}
	sql := `INSERT INTO relayops.pipeline_subscriptions
  (pipeline_key, trigger, orgs, from_position, stream, stream_incarnation, start_seq, swept_seq)
SELECT @pipeline, @trigger, @orgs::text[], ` + from + `, @stream, @incarnation::timestamptz,
  @start_seq::bigint, @start_seq::bigint - 1
ON CONFLICT (pipeline_key) DO NOTHING`
	return l.settle(ctx, "register the subscription", true, func(ctx context.Context, _ bool) error {
		_, err := l.pool.Exec(ctx, sql, arguments)
		return err
	})
}

func (l *Ledger) describeSubscription(ctx context.Context, wanted *NewSubscription) error {
	const sql = `UPDATE relayops.pipeline_subscriptions SET trigger = @trigger, orgs = @orgs::text[]
WHERE pipeline_key = @pipeline AND (trigger, orgs) IS DISTINCT FROM (@trigger, @orgs::text[])`
	return l.settle(ctx, "describe the subscription", true, func(ctx context.Context, _ bool) error {
		_, err := l.pool.Exec(ctx, sql, l.subscriptionArguments(wanted))
		return err
	})
}

func (l *Ledger) subscriptionArguments(wanted *NewSubscription) namedArgs {
	orgs := wanted.Orgs
	if orgs == nil {
		orgs = []string{}
	}
	return namedArgs{
		"pipeline": l.config.PipelineKey, "trigger": wanted.Trigger, "orgs": orgs, "stream": wanted.Stream,
		"start_seq":   int64(wanted.StartSeq),
		"incarnation": wanted.Incarnation.Truncate(time.Microsecond),
	}
}

// nextPosition is the expression of the position after the last one; 0 when the table has none. The insertion number
// of relayops.outbox_events comes from a sequence: what it gave last was inserted before now, committed or not. A
// mapped table is asked for its rows.
func (l *Ledger) nextPosition() string {
	table := l.config.Table
	position, numbered := table.Column("position")
	if !numbered {
		return "0"
	}
	last := fmt.Sprintf("(SELECT max(%s) FROM %s)", position, table.Identifier())
	if !table.Mapped() {
		last = lastPositionSQL
	}
	return "coalesce(" + last + ", 0)::bigint + 1"
}

// searchTime bounds the search for the first event since a time, which may have to read the whole table.
const searchTime = 5 * time.Minute

// firstPositionSince is the position of the first event that was inserted at a time or later, or the next position when
// there is none; 0 when the table has no positions.
//
// The server itself ends a search that takes longer than searchTime, so that searches never pile up. Nothing is
// written: a search that ended for whatever reason may begin again.
func (l *Ledger) firstPositionSince(ctx context.Context, since time.Time) (first int64, err error) {
	table := l.config.Table
	position, numbered := table.Column("position")
	if !numbered {
		return 0, nil
	}
	created, dated := table.Column("created_at")
	if !dated {
		created, _ = table.Column("occurred_at")
	}
	sql := fmt.Sprintf("SELECT least($1::bigint, (SELECT min(%s) FROM %s WHERE %s >= $2))",
		position, table.Identifier(), created)
	limit := l.config.SearchTime
	searching, cancel := context.WithTimeout(ctx, limit+l.config.StatementTimeout)
	defer cancel()
	err = pgx.BeginTxFunc(searching, l.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(searching, "SELECT set_config('statement_timeout', $1, true)",
			strconv.FormatInt(limit.Milliseconds(), 10)); err != nil {
			return err
		}
		// Read before the search: what is inserted during it has this position or a later one.
		var next int64
		if err := tx.QueryRow(searching, "SELECT "+l.nextPosition()).Scan(&next); err != nil {
			return err
		}
		return tx.QueryRow(searching, sql, next, since).Scan(&first)
	})
	if err == nil {
		l.config.Observe(nil)
		return first, nil
	}
	err = fmt.Errorf("search %s for the first event since %s, for %v at most; an index of %s helps: %w: %w",
		table.Identifier(), since.UTC().Format(time.RFC3339), limit, created, ErrUnavailable, err)
	l.config.Observe(err)
	return 0, err
}

// lastPositionSQL reads the sequence of relayops.outbox_events through pg_sequence_last_value, which is NULL before the
// first use.
const lastPositionSQL = `pg_sequence_last_value(pg_get_serial_sequence('relayops.outbox_events', 'position')::regclass)`

// Subscription reads the pipeline's subscription; nil when there is none.
func (l *Ledger) Subscription(ctx context.Context) (*Subscription, error) {
	return l.oneSubscription(ctx, "read the subscription",
		`SELECT `+subscriptionColumns+` FROM relayops.pipeline_subscriptions WHERE pipeline_key = @pipeline`, nil)
}

// BeginSweep gives the subscription to the one worker that is to sweep now: at most once in every interval, whatever
// the number of workers. Nil: somebody else did it, or there is no subscription.
func (l *Ledger) BeginSweep(ctx context.Context, every time.Duration) (*Subscription, error) {
	return l.oneSubscription(ctx, "begin a sweep",
		`UPDATE relayops.pipeline_subscriptions SET updated_at = now()
WHERE pipeline_key = @pipeline AND updated_at <= now() - @every::interval RETURNING `+subscriptionColumns,
		namedArgs{"every": every})
}

// Swept moves the sweep's cursor from where from has it; false: somebody else moved it, or the stream was made anew.
func (l *Ledger) Swept(ctx context.Context, from *Subscription, to uint64) (bool, error) {
	found, err := l.oneSubscription(ctx, "record the sweep",
		`UPDATE relayops.pipeline_subscriptions SET swept_seq = @to::bigint, updated_at = now()
WHERE pipeline_key = @pipeline AND swept_seq = @from::bigint
  AND (stream, stream_incarnation) = (@stream, @incarnation::timestamptz) RETURNING `+subscriptionColumns,
		namedArgs{
			"from": int64(from.SweptSeq), "to": int64(to),
			"stream": from.Stream, "incarnation": from.Incarnation,
		})
	return found != nil, err
}

// Rebase begins the subscription anew, at a stream's first message, if the stream is not the one that its sequences
// count in: another stream, one that was made anew (incarnation), or one that ends (last) before what was swept, as
// after a restore. What the subscription does not cover is dropped by position, what has been executed by the ledger.
// Nil: all is as it was.
//
// It is done before a consumer is made on the stream: a worker that ends in between leaves nothing half done.
func (l *Ledger) Rebase(ctx context.Context, stream string, incarnation time.Time, last uint64) (*Subscription, error) {
	return l.oneSubscription(ctx, "rebase the subscription",
		`UPDATE relayops.pipeline_subscriptions SET stream = @stream, stream_incarnation = @incarnation::timestamptz,
  start_seq = 1, swept_seq = 0
WHERE pipeline_key = @pipeline AND ((stream, stream_incarnation) <> (@stream, @incarnation::timestamptz)
  OR swept_seq > @last::bigint) RETURNING `+subscriptionColumns,
		namedArgs{
			"stream": stream, "incarnation": incarnation.Truncate(time.Microsecond),
			"last": int64(last),
		})
}

func (l *Ledger) oneSubscription(ctx context.Context, what, sql string, arguments namedArgs,
) (*Subscription, error) {
	if arguments == nil {
		arguments = namedArgs{}
	}
	arguments["pipeline"] = l.config.PipelineKey
	var found []Subscription
	err := l.settle(ctx, what, true, func(ctx context.Context, _ bool) error {
		rows, err := l.pool.Query(ctx, sql, arguments)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, scanSubscription)
		return err
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

func scanSubscription(rows pgx.CollectableRow) (s Subscription, err error) {
	var start, swept int64
	err = rows.Scan(&s.FromPosition, &s.UntilPosition, &s.Stream, &s.Incarnation, &start, &swept)
	s.Incarnation = s.Incarnation.UTC()
	s.StartSeq, s.SweptSeq = uint64(start), uint64(swept)
	return s, err
}

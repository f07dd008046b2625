package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrInTransaction says that a ping was asked for inside a transaction. There, NOTIFY would take a lock on the whole
// database while the transaction commits, and the commits of all writers would queue up behind each other.
var ErrInTransaction = errors.New("a ping belongs after the commit, on a connection without a transaction")

const notify = "SELECT pg_notify('" + Channel + "', '')"

// Executor runs a statement: a *pgxpool.Pool or a *pgx.Conn.
type Executor interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
}

// ExecutorSQL runs a statement: a *sql.DB or a *sql.Conn.
type ExecutorSQL interface {
	ExecContext(ctx context.Context, query string, arguments ...any) (sql.Result, error)
}

// Ping wakes the relays up. Call it after the commit; where commits are frequent, use a [Pinger], which makes one ping
// of many. A ping that fails does no harm: the relay finds the event at its next poll.
//
// A db that is in a transaction gives [ErrInTransaction].
func Ping(ctx context.Context, db Executor) error {
	inTransaction := false
	switch conn := db.(type) {
	case pgx.Tx:
		inTransaction = true
	case interface{ PgConn() *pgconn.PgConn }:
		inTransaction = conn.PgConn().TxStatus() != 'I'
	case interface{ Conn() *pgx.Conn }:
		inTransaction = conn.Conn().PgConn().TxStatus() != 'I'
	}
	if inTransaction {
		return ErrInTransaction
	}
	if _, err := db.Exec(ctx, notify); err != nil {
		return fmt.Errorf("wake the relay up: %w", err)
	}
	return nil
}

// PingSQL is [Ping] for database/sql. A *sql.Tx gives [ErrInTransaction].
func PingSQL(ctx context.Context, db ExecutorSQL) error {
	if _, inTransaction := db.(*sql.Tx); inTransaction {
		return ErrInTransaction
	}
	if _, err := db.ExecContext(ctx, notify); err != nil {
		return fmt.Errorf("wake the relay up: %w", err)
	}
	return nil
}

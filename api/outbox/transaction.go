package outbox

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
)

// transaction is the caller's, of either kind. Arguments are text: the statements say, or the table says, what type
// they become, so that no driver has to know about arrays, UUIDs or JSON.
type transaction interface {
	// exec runs a statement. Often says that its text comes again and again, and is worth a prepared statement where
	// the connection prepares any.
	exec(ctx context.Context, statement string, often bool, arguments ...string) (affected int64, err error)
	// query gives each row, of an integer and a truth value, to found.
	query(ctx context.Context, statement string, found func(n int64, is bool), arguments ...string) error
}

type pgxTx struct{ tx pgx.Tx }

func (t pgxTx) exec(ctx context.Context, statement string, often bool, arguments ...string) (int64, error) {
	values := anySlice(arguments)
	if !often {
		values = append([]any{pgx.QueryExecModeExec}, values...)
	}
	tag, err := t.tx.Exec(ctx, statement, values...)
	return tag.RowsAffected(), err
}

func (t pgxTx) query(ctx context.Context, statement string, found func(int64, bool), arguments ...string) error {
	rows, err := t.tx.Query(ctx, statement, append([]any{pgx.QueryExecModeExec}, anySlice(arguments)...)...)
	if err != nil {
		return err
	}
	var n int64
	var is bool
	_, err = pgx.ForEachRow(rows, []any{&n, &is}, func() error {
		found(n, is)
		return nil
	})
	return err
}

type sqlTx struct{ tx *sql.Tx }

func (t sqlTx) exec(ctx context.Context, statement string, _ bool, arguments ...string) (int64, error) {
	result, err := t.tx.ExecContext(ctx, statement, anySlice(arguments)...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (t sqlTx) query(ctx context.Context, statement string, found func(int64, bool), arguments ...string) (err error) {
	rows, err := t.tx.QueryContext(ctx, statement, anySlice(arguments)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var n int64
		var is bool
		if err := rows.Scan(&n, &is); err != nil {
			return err
		}
		found(n, is)
	}
	return rows.Err()
}

func anySlice(texts []string) []any {
	values := make([]any, len(texts))
	for i, text := range texts {
		values[i] = text
	}
	return values
}

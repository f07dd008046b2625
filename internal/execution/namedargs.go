package execution

import (
	"context"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// namedArgs are a statement's arguments by name, as pgx.NamedArgs are. A statement is searched for names once, and not
// at each query; and UUIDs go in their binary form, which pgx finds for uuid.UUID only after it has tried others.
type namedArgs map[string]any

// preparedText is an SQL text with numbered parameters, and the arguments' names in their order.
type preparedText struct {
	sql   string
	names []any
}

// statements holds a preparedText for each SQL text of this package: they are constants, but for the outbox's name.
var statements sync.Map

// RewriteQuery implements pgx.QueryRewriter.
func (a namedArgs) RewriteQuery(ctx context.Context, conn *pgx.Conn, sql string, args []any,
) (numbered string, values []any, err error) {
	known, isKnown := statements.Load(sql)
	if !isKnown {
		// Each name stands for itself: what comes back is the order.
		itself := make(pgx.NamedArgs, len(a))
		for name := range a {
			itself[name] = name
		}
		numbered, names, err := itself.RewriteQuery(ctx, conn, sql, args)
		if err != nil {
			return "", nil, err
		}
		known, _ = statements.LoadOrStore(sql, preparedText{numbered, names})
	}
	s := known.(preparedText)
	values = make([]any, len(s.names))
	for i, name := range s.names {
		text, given := name.(string)
		if !given {
			continue // An argument that is not given is NULL.
		}
		values[i] = a[text]
		if id, isUUID := values[i].(uuid.UUID); isUUID {
			values[i] = [16]byte(id)
		}
	}
	return s.sql, values, nil
}

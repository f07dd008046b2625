package rig

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Query is a statement and how often a role ran it.
type Query struct {
	Text  string
	Calls int64
}

// ForgetQueries begins to count from zero.
func (r *Rig) ForgetQueries(ctx context.Context) error {
	if !r.CountsQueries {
		return nil
	}
	if _, err := r.Database.Exec(ctx, "SELECT pg_stat_statements_reset()"); err != nil {
		return fmt.Errorf("reset pg_stat_statements: %w", err)
	}
	return nil
}

// Queries are what a role ran since [Rig.ForgetQueries], the most frequent first, BEGIN and COMMIT among them. White
// space in their text is made one blank each.
func (r *Rig) Queries(ctx context.Context, role string) ([]Query, error) {
	rows, err := r.Database.Query(ctx, `SELECT s.query, sum(s.calls)::bigint FROM pg_stat_statements s
		JOIN pg_roles r ON r.oid = s.userid WHERE r.rolname = $1 GROUP BY 1 ORDER BY 2 DESC, 1`, role)
	if err != nil {
		return nil, fmt.Errorf("queries of role %s: %w", role, err)
	}
	queries, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Query])
	if err != nil {
		return nil, fmt.Errorf("queries of role %s: %w", role, err)
	}
	for i := range queries {
		queries[i].Text = strings.Join(strings.Fields(queries[i].Text), " ")
	}
	return queries, nil
}

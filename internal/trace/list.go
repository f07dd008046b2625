package trace

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Filter selects executions or dead letters. A zero field selects all.
type Filter struct {
	// Org is an organisation's exact name.
	Org string
	// Pipeline is a pipeline key (instance/namespace/name), or its end: name, or namespace/name.
	Pipeline string
	// State of an execution, or Code of a dead letter.
	State string
	Code  string
	// Limit is the most rows, 1 or more.
	Limit int
}

// States are the states of an execution.
var States = []string{"RUNNING", "RETRY", "SUCCEEDED", "DEAD_LETTERED", "CANCELLED"}

// Executions lists executions, the newest first, by the time in their ids.
func Executions(ctx context.Context, db DB, filter Filter) ([]Execution, error) {
	where, args := filter.conditions("state", filter.State)
	return list(ctx, db, `SELECT`+executionColumns+` FROM relayops.pipeline_executions WHERE `+where+`
		ORDER BY execution_id DESC LIMIT $1`, args, scanExecution)
}

// DeadLetters lists dead letters, the newest first, by the time in their ids.
func DeadLetters(ctx context.Context, db DB, filter Filter) ([]DeadLetter, error) {
	where, args := filter.conditions("code", filter.Code)
	return list(ctx, db, `SELECT`+deadLetterColumns+` FROM relayops.dead_letters WHERE `+where+`
		ORDER BY dead_letter_id DESC LIMIT $1`, args, scanDeadLetter)
}

// DeadLetterByID reads one dead letter, nil if there is none of this id.
func DeadLetterByID(ctx context.Context, db DB, id uuid.UUID) (*DeadLetter, error) {
	found, err := list(ctx, db, `SELECT`+deadLetterColumns+` FROM relayops.dead_letters WHERE dead_letter_id = $1`,
		[]any{id}, scanDeadLetter)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// conditions is the WHERE clause of a list, whose argument $1 is the limit. Only what is filtered by stands in it, so
// that the planner sees which index serves.
func (f Filter) conditions(column, value string) (where string, args []any) {
	conditions := []string{"true"}
	args = []any{f.Limit}
	add := func(condition string, arg any) {
		args = append(args, arg)
		conditions = append(conditions, strings.ReplaceAll(condition, "?", fmt.Sprintf("$%d", len(args))))
	}
	if f.Org != "" {
		add("org_id = ?", f.Org)
	}
	if f.Pipeline != "" {
		add("(pipeline_key = ? OR right(pipeline_key, length(?::text) + 1) = '/' || ?::text)", f.Pipeline)
	}
	if value != "" {
		add(column+" = ?", value)
	}
	return strings.Join(conditions, " AND "), args
}

func list[T any](ctx context.Context, db DB, query string, args []any, scan pgx.RowToFunc[T]) ([]T, error) {
	var found []T
	err := snapshot(ctx, db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, scan)
		return err
	})
	return found, err
}

package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/internal/engine"
)

// ErrRevisionMissing says: the revision that an execution began with is not recorded.
var ErrRevisionMissing = errors.New("pipeline revision missing")

// RecordRevision stores the pipeline's graph under its revision, unless it is there. What a revision stands for never
// changes.
func (l *Ledger) RecordRevision(ctx context.Context, revision string, definition engine.Definition) error {
	const sql = `INSERT INTO relayops.pipeline_revisions (pipeline_key, revision, definition)
VALUES (@pipeline, @revision, @definition::jsonb) ON CONFLICT DO NOTHING`
	text, err := json.Marshal(definition)
	if err != nil {
		return fmt.Errorf("marshal revision %s: %w", revision, err)
	}
	arguments := namedArgs{"pipeline": l.config.PipelineKey, "revision": revision, "definition": string(text)}
	return l.settle(ctx, "record revision "+revision, true, func(ctx context.Context, _ bool) error {
		_, err := l.pool.Exec(ctx, sql, arguments)
		return err
	})
}

// Revision reads a graph. Its errors are [ErrRevisionMissing], [ErrUnavailable] and [ErrRefused].
func (l *Ledger) Revision(ctx context.Context, revision string) (engine.Definition, error) {
	const sql = `SELECT definition::text FROM relayops.pipeline_revisions
WHERE pipeline_key = @pipeline AND revision = @revision`
	what := "read revision " + revision
	var found []string
	err := l.settle(ctx, what, true, func(ctx context.Context, _ bool) error {
		rows, err := l.pool.Query(ctx, sql, namedArgs{"pipeline": l.config.PipelineKey, "revision": revision})
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		return engine.Definition{}, err
	}
	if len(found) == 0 {
		return engine.Definition{}, fmt.Errorf("%s: %w", what, ErrRevisionMissing)
	}
	var definition engine.Definition
	if err := json.Unmarshal([]byte(found[0]), &definition); err != nil {
		return engine.Definition{}, fmt.Errorf("%s: %w: %w", what, ErrRefused, err)
	}
	return definition, nil
}

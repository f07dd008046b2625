package execution

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Probe asks whether the database can be written to: one that only reads, such as a standby or one whose disk is full,
// would let a worker take messages up that it cannot claim. Its errors are those of [Ledger.Claim].
func (l *Ledger) Probe(ctx context.Context) error {
	const sql = `UPDATE relayops.pipeline_subscriptions SET updated_at = updated_at WHERE pipeline_key = @pipeline`
	return l.settle(ctx, "probe the database", true, func(ctx context.Context, _ bool) error {
		_, err := l.pool.Exec(ctx, sql, pgx.NamedArgs{"pipeline": l.config.PipelineKey})
		return err
	})
}

package load

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// The database makes the rows itself: a filling of 32 characters for each md5, cut to the size.
const fillStatement = `INSERT INTO relayops.outbox_events (org_id, event_type, aggregate_type, aggregate_id, payload)
	SELECT 'bench-' || n % $2::integer, $3::text, 'Order', 'order-' || n,
		jsonb_build_object('amount', n % 1000 + 0.5, 'orderId', 'order-' || n, 'filling',
			left((SELECT string_agg(md5(n || ':' || part), '') FROM generate_series(1, $4::integer / 32 + 1) part),
				$4::integer - 60))
	FROM generate_series(1, $1::integer) n`

// Backlog commits n events of about size bytes of payload in one transaction, and gives the time of the commit.
func Backlog(ctx context.Context, pool *pgxpool.Pool, n, size int) (time.Time, error) {
	if _, err := pool.Exec(ctx, fillStatement, n, Orgs, EventType, size); err != nil {
		return time.Time{}, fmt.Errorf("fill the outbox with %d events: %w", n, err)
	}
	return time.Now(), nil
}

// Settle vacuums and analyses the outbox, so that no trial pays for what its filling left behind.
func Settle(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, "VACUUM (ANALYZE) relayops.outbox_events"); err != nil {
		return fmt.Errorf("vacuum the outbox: %w", err)
	}
	return nil
}

package limit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/relayops/relayops/api/outbox"
)

// Layouts of a loop.
const (
	Transaction = "transaction"
	Lease       = "lease"
)

// Spec says what loop to run.
type Spec struct {
	DatabaseURL string `json:"databaseUrl"`
	NATSURL     string `json:"natsUrl"`
	Stream      string `json:"stream"`
	Prefix      string `json:"prefix"`
	// Layout is Transaction or Lease.
	Layout string `json:"layout"`
	// Batch is the most rows of one claim, Claimers how many claims are in flight at once.
	Batch    int `json:"batch"`
	Claimers int `json:"claimers"`
	// Envelope sends the whole envelope in headers, as the relay does; otherwise a message has an id and the payload.
	Envelope bool `json:"envelope"`
	// Listen waits for the wake-up when the outbox is empty, for at most PollInterval; otherwise it looks again every
	// 5 ms.
	Listen       bool          `json:"listen"`
	PollInterval time.Duration `json:"pollInterval"`
}

// Run runs the loop until ctx ends.
func Run(ctx context.Context, spec Spec) error {
	broker, err := nats.Connect(spec.NATSURL, nats.Name("hand"))
	if err != nil {
		return fmt.Errorf("connect to the broker: %w", err)
	}
	defer broker.Close()
	js, err := jetstream.New(broker, jetstream.WithPublishAsyncMaxPending(spec.Batch*spec.Claimers+1))
	if err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	wake := make(chan struct{}, spec.Claimers)
	if spec.Listen {
		group.Go(func() error { return listen(ctx, spec.DatabaseURL, wake) })
	}
	for range spec.Claimers {
		group.Go(func() error {
			conn, err := pgx.Connect(ctx, spec.DatabaseURL)
			if err != nil {
				return fmt.Errorf("connect to the database: %w", err)
			}
			defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
			c := claimer{spec: spec, conn: conn, js: js}
			return c.loop(ctx, wake)
		})
	}
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func listen(ctx context.Context, databaseURL string, wake chan<- struct{}) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "LISTEN "+outbox.Channel); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return fmt.Errorf("wait for a notification: %w", err)
		}
		select {
		case wake <- struct{}{}:
		default: // Everybody is awake.
		}
	}
}

type claimer struct {
	spec Spec
	conn *pgx.Conn
	js   jetstream.JetStream

	rows      []row
	acks      []jetstream.PubAckFuture
	sequences []int64
}

func (c *claimer) loop(ctx context.Context, wake <-chan struct{}) error {
	turn := c.inTransaction
	if c.spec.Layout == Lease {
		turn = c.withLease
	}
	idle := 5 * time.Millisecond
	if c.spec.Listen {
		idle = c.spec.PollInterval
	}
	for {
		n, err := turn(ctx)
		if err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		select {
		case <-wake:
		case <-time.After(idle):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

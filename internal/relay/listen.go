package relay

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"

	table "github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/connect"
)

// longestListenPause bounds the wait before LISTEN is tried again. Polling goes on meanwhile.
const longestListenPause = 30 * time.Second

// listen keeps a connection that hears the producers' wake-ups, and makes a new one whenever it is lost.
func (r *Relay) listen(ctx context.Context) {
	pause := &backoff.ExponentialBackOff{
		InitialInterval: firstPause, MaxInterval: longestListenPause, Multiplier: 2, RandomizationFactor: 0.5,
	}
	pause.Reset()
	for ctx.Err() == nil {
		err := r.listenOnce(ctx, pause.Reset)
		r.setListening(false)
		if ctx.Err() != nil {
			return
		}
		r.log.Debug("no wake-ups; polling goes on", "error", connect.Explain(err))
		sleep(ctx, pause.NextBackOff(), nil)
	}
}

func (r *Relay) listenOnce(ctx context.Context, connected func()) error {
	conn, err := connect.Listen(ctx, r.spec.Database, "relayops-relay-listen")
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
		defer cancel()
		_ = conn.Close(closing) // The connection is given up either way.
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{table.Channel}.Sanitize()); err != nil {
		return err
	}
	connected()
	r.setListening(true)
	r.Wake() // Whatever was committed while nobody listened.
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
		r.metrics.wakeUps.Inc()
		r.Wake()
	}
}

func (r *Relay) setListening(listening bool) {
	r.progress.mu.Lock()
	r.progress.listening = listening
	r.progress.mu.Unlock()
}

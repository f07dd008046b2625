package worker

import (
	"context"
	"time"
)

// renewRetry is how soon a renewal is tried again that the database did not answer.
const renewRetry = time.Second

// heartbeat is how often leases are renewed and the broker is told that messages are in work.
func (w *Worker) heartbeat() time.Duration { return w.spec.LeaseDuration.Std() / 3 }

// keepMessages tells the broker that the messages in hand are in work, until ctx ends.
func (w *Worker) keepMessages(ctx context.Context) {
	for pause(ctx, w.heartbeat()) {
		for _, msg := range w.hand.allMessages() {
			if err := msg.InProgress(); err != nil {
				w.log.Debug("message not kept", "error", err)
			}
		}
	}
}

// keepLeases renews the leases of running attempts, all in one statement, until ctx ends. An attempt whose lease is
// lost is cut off. While the database is away attempts go on: nothing of them can be recorded, and whoever takes them
// over needs the database too.
func (w *Worker) keepLeases(ctx context.Context) {
	wait := w.heartbeat()
	for pause(ctx, wait) {
		wait = w.heartbeat()
		renewals := w.hand.renewals()
		if len(renewals) == 0 {
			continue
		}
		lost, err := w.ledger.Renew(ctx, renewals)
		if err != nil {
			wait = min(wait, renewRetry)
			continue
		}
		for _, lease := range lost {
			// It may have ended by itself meanwhile, and is not in hand then.
			if r := w.hand.attempt(lease); r != nil {
				r.cancel(errLeaseTaken)
			}
		}
	}
}

package relay

import (
	"context"
	"errors"
	"time"

	"github.com/relayops/relayops/internal/connect"
	"github.com/relayops/relayops/internal/crashpoint"
	"github.com/relayops/relayops/internal/outbox"
)

// batchBytes bounds the payloads that one of several claimers holds in memory, so that all of them together hold 16 MiB
// at most. One larger payload is held alone.
func batchBytes(claimers int) int { return max(1<<20, min(4<<20, (16<<20)/claimers)) }

// claimer claims and publishes batches after each wake-up until nothing is due. A batch that was not full is followed
// by another claim all the same: what was committed meanwhile need not wait for its ping, or for the poll if nobody
// pings.
func (r *Relay) claimer(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		for ctx.Err() == nil && r.gate.isOpen() {
			result := r.batch(ctx, r.spec.BatchSize)
			if result.err != nil || result.rows == 0 {
				break
			}
		}
	}
}

// batchResult is what a batch tells its caller. After an err the gate is shut, or only the claim was lost.
type batchResult struct {
	rows, published int
	err             error
}

// batch claims, publishes and marks one batch. It ends the claim whatever happens; ctx ends only the claiming, a batch
// in hand is finished.
func (r *Relay) batch(ctx context.Context, limit int) (result batchResult) {
	started := r.now()
	var claim *outbox.Claim
	defer func() {
		if fault := recover(); fault != nil {
			result.err = r.contained("the batch is given back", fault)
			r.gate.pause(ReasonInternalError, result.err)
		}
		if claim != nil {
			claim.Release(ctx)
		}
	}()
	lease := r.spec.ClaimLease.Std()
	claiming, cancelClaiming := context.WithTimeout(ctx, lease)
	defer cancelClaiming()
	claim, err := r.store.Claim(claiming, r.pool, outbox.Request{
		Limit: r.limit(limit), MaxBytes: batchBytes(r.spec.Claimers), InlineBytes: r.spec.MaxInlinePayloadBytes,
		Lease: lease,
	})
	if err != nil {
		return batchResult{err: r.databaseFailed(ctx, err)}
	}
	if len(claim.Rows) == 0 {
		return batchResult{}
	}
	crashpoint.Here(crashpoint.AfterClaim)
	if claim.Full {
		r.Wake() // There is work for another claimer.
	}
	r.averageBytes.Store(int64(claim.Bytes / len(claim.Rows)))

	// A batch in hand outlives a SIGTERM, and never its claim.
	remaining := lease - r.now().Sub(started)
	inHand := context.WithoutCancel(ctx)
	publishing, cancelPublishing := context.WithTimeout(inHand, remaining-leaseMargin(lease))
	defer cancelPublishing()
	outcomes := r.publisher.publish(publishing, claim.Rows)
	crashpoint.Here(crashpoint.AfterPublishBeforeMark)

	j := judge(claim.Rows, outcomes, &r.spec, r.random)
	if j.err != nil {
		r.gate.pause(j.pause, j.err)
	}
	marking, cancelMarking := context.WithTimeout(inHand, remaining)
	defer cancelMarking()
	if err := claim.Settle(marking, j.marks); err != nil {
		r.metrics.claimsLost.Inc()
		return batchResult{rows: len(claim.Rows), err: r.databaseFailed(marking, err)}
	}
	crashpoint.Here(crashpoint.AfterMark)
	r.record(&j, len(claim.Rows), r.now().Sub(started))
	return batchResult{rows: len(claim.Rows), published: len(j.marks.Published), err: j.err}
}

// limit keeps a claim from locking more rows than it may hold.
func (r *Relay) limit(most int) int {
	average := r.averageBytes.Load()
	if average <= 0 {
		return most
	}
	return max(1, min(most, batchBytes(r.spec.Claimers)/int(average)))
}

// databaseFailed pauses the relay unless the error is about one claim only, or the relay is stopping.
func (r *Relay) databaseFailed(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	reason := classifyDatabase(err)
	if reason == "" {
		r.log.Warn("claim lost; its rows are published again", "error", err)
		return err
	}
	r.gate.pause(reason, err)
	// Idle connections to a server that went away would fail one by one.
	r.pool.Reset()
	return err
}

func (r *Relay) record(j *judgement, rows int, took time.Duration) {
	r.metrics.batch(j, rows, took)
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	r.progress.published += uint64(len(j.marks.Published))
	r.progress.failures += uint64(len(j.marks.Failed))
	if len(j.marks.Published) > 0 {
		r.progress.lastPublished = r.now()
	}
	for _, failed := range j.marks.Failed {
		r.log.Warn("event not published", "event", failed.Row.EventID(), "code", failed.Code,
			"attempt", failed.Row.Attempts+1, "final", failed.Final)
		if failed.Row.Fault != nil {
			r.log.Debug("invalid event", "event", failed.Row.EventID(), "error", failed.Row.Fault)
		}
	}
	if j.err != nil {
		r.log.Debug("batch interrupted", "error", connect.Explain(j.err))
	}
}

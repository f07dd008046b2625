package relay

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"

	"github.com/relayops/relayops/internal/connect"
	"github.com/relayops/relayops/internal/stream"
)

const (
	// firstPause and longestPause bound the wait before a paused relay tries again.
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	// checkTimeout bounds each question to a server.
	checkTimeout = 5 * time.Second
	// schemaTimeout bounds the check of the schema, which may bring it up to date or wait for somebody who does.
	schemaTimeout = time.Minute
	// trialRows is how many rows the first batch after a pause may have.
	trialRows = 10
	// ensureEvery is how often the stream is looked after while all is well, failedEvery how often FAILED rows are
	// counted.
	ensureEvery = time.Minute
	failedEvery = time.Minute
)

// supervise keeps the gate: it opens it when both servers are there, and looks after the outbox and the stream while it
// is open.
func (r *Relay) supervise(ctx context.Context) {
	status := r.nc.StatusChanged(nats.CONNECTED, nats.RECONNECTING)
	defer r.nc.RemoveStatusListener(status)
	for ctx.Err() == nil {
		r.recover(ctx, status)
		if ctx.Err() == nil {
			r.watch(ctx, status)
		}
	}
}

// recover returns when the gate is open.
func (r *Relay) recover(ctx context.Context, status <-chan nats.Status) {
	pause := &backoff.ExponentialBackOff{
		InitialInterval: firstPause, MaxInterval: longestPause, Multiplier: 2, RandomizationFactor: 0.5,
	}
	pause.Reset()
	logged := Reason("")
	limit := trialRows
	for wait := r.firstWait(); ; wait = pause.NextBackOff() {
		if !sleep(ctx, wait, status) {
			return
		}
		reason, err := r.checkServers(ctx)
		if reason == "" {
			trial := batchResult{}
			if !r.spec.Suspended {
				trial = r.batch(ctx, min(limit, r.spec.BatchSize))
			}
			if trial.err == nil {
				r.gate.open()
				r.log.Info("relay runs")
				r.Wake()
				return
			}
			if trial.published > 0 {
				// Some get through: go on at their pace.
				pause.Reset()
				limit *= 4
			}
			reason, _, err = r.gate.state()
		} else {
			r.gate.pause(reason, err)
		}
		if reason != logged && ctx.Err() == nil {
			logged = reason
			r.log.Warn("relay paused", "reason", reason, "error", connect.Explain(err))
		}
	}
}

// firstWait is none at the start, and the first back-off after a failure.
func (r *Relay) firstWait() time.Duration {
	if reason, _, _ := r.gate.state(); reason == ReasonStarting {
		return 0
	}
	return firstPause/2 + time.Duration(r.random()*float64(firstPause))
}

// sleep waits, until the broker comes back at the longest. It reports whether ctx goes on.
func sleep(ctx context.Context, wait time.Duration, status <-chan nats.Status) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case changed := <-status:
			if changed == nats.CONNECTED {
				return true
			}
		}
	}
}

// watch polls the outbox and looks after the stream until the gate shuts or ctx ends.
func (r *Relay) watch(ctx context.Context, status <-chan nats.Status) {
	poll := time.NewTicker(r.spec.PollInterval.Std())
	defer poll.Stop()
	ensure := time.NewTicker(ensureEvery)
	defer ensure.Stop()
	shut := r.gate.paused()
	for {
		select {
		case <-ctx.Done():
			return
		case <-shut:
			return
		case changed := <-status:
			if changed == nats.RECONNECTING && !r.nc.IsConnected() {
				r.gate.pause(r.brokerAway())
			}
		case <-ensure.C:
			if reason, err := r.ensureStream(ctx); reason != "" && ctx.Err() == nil {
				r.gate.pause(reason, err)
			}
		case <-poll.C:
			if reason, err := r.probe(ctx); reason != "" && ctx.Err() == nil {
				r.gate.pause(reason, err)
			}
		}
	}
}

// probe asks what is due and wakes a claimer if something is.
func (r *Relay) probe(ctx context.Context) (Reason, error) {
	asking, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	countFailed := r.now().Sub(r.failedCounted) >= failedEvery
	backlog, err := r.store.Backlog(asking, r.pool, countFailed)
	if err != nil {
		r.pool.Reset()
		r.schemaChecked = false
		return orUnreachable(classifyDatabase(err)), err
	}
	if countFailed {
		r.failedCounted = r.now()
		r.metrics.failed.Set(float64(backlog.Failed))
	}
	r.metrics.backlog(backlog)
	r.progress.mu.Lock()
	if !countFailed {
		backlog.Failed = r.progress.backlog.Failed
	}
	r.progress.backlog = backlog
	r.progress.mu.Unlock()
	if backlog.Due > 0 {
		r.Wake()
	}
	return "", nil
}

// checkServers asks both servers for all that a batch needs. The reason is empty when all is well.
func (r *Relay) checkServers(ctx context.Context) (reason Reason, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			reason, err = ReasonInternalError, r.contained("tried again", fault)
		}
	}()
	if reason, err := r.checkSchema(ctx); reason != "" {
		return reason, err
	}
	if reason, err := r.probe(ctx); reason != "" {
		return reason, err
	}
	if !r.nc.IsConnected() {
		return r.brokerAway()
	}
	return r.ensureStream(ctx)
}

func (r *Relay) checkSchema(ctx context.Context) (Reason, error) {
	if r.schemaChecked || r.check == nil {
		return "", nil
	}
	asking, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	if err := r.pool.Ping(asking); err != nil {
		return orUnreachable(classifyDatabase(err)), err
	}
	if err := r.check(asking, r.pool); err != nil {
		if reason := classifyDatabase(err); reason == ReasonDatabaseUnauthorized {
			return reason, err
		}
		return ReasonSchemaNotReady, err
	}
	r.schemaChecked = true
	return "", nil
}

func (r *Relay) brokerAway() (Reason, error) {
	err := r.nc.LastError()
	if err == nil {
		err = nats.ErrConnectionReconnecting
	}
	if classify(err).reason == ReasonUnauthorized {
		return ReasonUnauthorized, err
	}
	return ReasonBrokerUnreachable, err
}

// ensureStream brings the stream to what is wanted. A stream that was there and is missing is reported, and made anew.
func (r *Relay) ensureStream(ctx context.Context) (Reason, error) {
	asking, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	state, err := stream.Ensure(asking, r.publisher.js, r.spec.Stream)
	if err != nil {
		return classifyEnsure(err), err
	}
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	switch {
	case state.Applied == stream.Created && r.progress.streamSeen:
		r.progress.streamRecreated++
		r.metrics.streamRecreated.Inc()
		r.log.Warn("the stream was missing and was made anew: messages that it held are gone", "stream", r.spec.Stream.Name)
	case state.Applied != stream.Unchanged:
		r.log.Info("stream ensured", "stream", r.spec.Stream.Name, "applied", state.Applied, "changes", state.Changes)
	}
	if !r.progress.streamSeen {
		r.warnOfLimits()
	}
	r.progress.streamSeen = true
	return "", nil
}

// headerRoom is what an event's headers may take beside its payload: the event's own limit, and as much for the rest.
const headerRoom = 32 << 10

func (r *Relay) warnOfLimits() {
	largest := int64(r.spec.MaxInlinePayloadBytes) + headerRoom
	if limit := r.nc.MaxPayload(); limit < largest {
		r.log.Warn("the broker's max_payload is below what an inline event may need; such events fail as message_too_large",
			"max_payload", limit, "needed", largest)
	}
}

func orUnreachable(reason Reason) Reason {
	if reason == "" {
		return ReasonDatabaseUnreachable
	}
	return reason
}

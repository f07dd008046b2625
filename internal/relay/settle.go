package relay

import (
	"math"
	"time"

	"github.com/relayops/relayops/internal/outbox"
	"github.com/relayops/relayops/internal/runspec"
)

// judgement is what a batch's outcomes come to.
type judgement struct {
	marks outbox.Marks
	// pause is the reason to stop for a while, empty for none, and err what it was found by.
	pause Reason
	err   error
	// failures counts the event-specific failures by code.
	failures map[outbox.Code]int
	// verified duplicates had been published before; republished rows went out under another message id.
	verified, republished int
}

// judge turns the outcomes of a batch into marks and, perhaps, a pause. Rows that it does not mark are given back as
// they were.
func judge(rows []outbox.Row, outcomes []outcome, spec *runspec.Relay, random func() float64) judgement {
	j := judgement{marks: outbox.Marks{Stream: spec.Stream.Name}, failures: make(map[outbox.Code]int)}
	acknowledged := 0
	for _, o := range outcomes {
		if o.err == nil {
			acknowledged++
		}
	}
	for i := range rows {
		row, o := &rows[i], outcomes[i]
		if o.err == nil {
			j.published(row, o)
			continue
		}
		v := classify(o.err)
		if v.scope == scopeUnknown && acknowledged > 0 {
			v.scope = scopeEvent
		}
		if v.scope == scopeEvent {
			j.failed(row, v.code, spec, random())
			continue
		}
		if j.err == nil {
			j.pause, j.err = v.reason, o.err
		}
	}
	return j
}

func (j *judgement) published(row *outbox.Row, o outcome) {
	j.marks.Published = append(j.marks.Published, outbox.Published{Row: row, Sequence: o.sequence})
	if o.republished {
		j.republished++
	}
	if o.duplicate {
		j.verified++
	}
}

func (j *judgement) failed(row *outbox.Row, code outbox.Code, spec *runspec.Relay, random float64) {
	failures := int(row.Attempts) + 1
	j.failures[code]++
	j.marks.Failed = append(j.marks.Failed, outbox.Failed{
		Row: row, Code: code, Final: failures >= spec.MaxAttempts, RetryIn: retryDelay(spec.BackOff, failures, random),
	})
}

// retryDelay is how long a row waits after its failures-th failure, 1 or more. random is in [0, 1).
func retryDelay(policy runspec.BackOff, failures int, random float64) time.Duration {
	delay := float64(policy.Initial) * math.Pow(max(policy.Multiplier, 1), float64(failures-1))
	delay = min(delay, float64(policy.Max))
	delay *= 1 + policy.Jitter*(2*random-1)
	return time.Duration(max(delay, 0))
}

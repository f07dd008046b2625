package worker

import (
	"time"

	"github.com/relayops/relayops/internal/execution"
)

// settlement is what becomes of a message.
type settlement struct {
	how   settling
	delay time.Duration
}

type settling string

const (
	ack  settling = "ack"
	nak  settling = "nak"
	term settling = "term"
	// leave: nothing is said to the broker. The message is another worker's, or is delivered again.
	leave settling = "leave"
)

// Bounds of a delayed nak, which is for seconds: what waits longer, waits in the ledger.
const (
	shortestNak = time.Second
	longestNak  = 30 * time.Second
)

// settleUnclaimed is what becomes of the message of a claim that gave no lease; conflict says that a dead letter of the
// message has to be written first.
func settleUnclaimed(claim *execution.Claim) (s settlement, conflict bool) {
	switch claim.Verdict {
	case execution.LeasedByOther:
		return settlement{how: nak, delay: min(max(claim.LeaseLeft, shortestNak), longestNak)}, false
	case execution.PayloadConflict:
		return settlement{how: term}, true
	default: // Over, cancelled, or waiting: the ledger has it.
		return settlement{how: ack}, false
	}
}

// settleEnded is what becomes of the message of an attempt that ended so; empty for one whose end is not recorded.
func settleEnded(state execution.State) settlement {
	switch state {
	case "":
		return settlement{how: leave}
	case execution.DeadLettered:
		return settlement{how: term}
	default:
		return settlement{how: ack}
	}
}

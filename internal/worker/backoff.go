package worker

import (
	"math"
	"time"

	"github.com/relayops/relayops/internal/runspec"
)

// maxWait bounds every wait between attempts, whatever a specification or the other side asks for.
const maxWait = 24 * time.Hour

// retryDelay is how long an execution waits after its attempt-th attempt (1 or more) failed: exponential with jitter,
// and at least what the other side asked for. random is from [0, 1).
func retryDelay(spec runspec.BackOff, attempt int, random float64, retryAfter time.Duration) time.Duration {
	multiplier := max(spec.Multiplier, 1)
	longest := float64(spec.Max.Std())
	if longest <= 0 {
		longest = float64(maxWait)
	}
	delay := 0.0
	if initial := float64(spec.Initial.Std()); initial > 0 { // 0 × a power that overflowed is no number
		delay = min(initial*math.Pow(multiplier, float64(attempt-1)), longest)
	}
	jitter := min(max(spec.Jitter, 0), 1)
	delay *= 1 + jitter*(2*random-1)
	// Whoever asks for a wait gets at least that, and not everybody at the same moment.
	asked := float64(retryAfter) * (1 + jitter*random)
	return time.Duration(min(max(delay, asked, 0), float64(maxWait)))
}

package outbox

// Values of the column status. A mapped table holds them as text or as labels of an enum.
const (
	// StatusPending rows wait for the relay.
	StatusPending = "PENDING"
	// StatusPublished rows are acknowledged by the broker.
	StatusPublished = "PUBLISHED"
	// StatusFailed rows used up their attempts, and wait for a reprocess.
	StatusFailed = "FAILED"
)

// Channel is what relays listen at (LISTEN) to be woken up after a commit.
const Channel = "relayops_outbox"

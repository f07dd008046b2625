package runspec

// Relay is everything that a relay daemon needs to know.
type Relay struct {
	// Key is <instance>/<namespace>/<name> of the OutboxRelay.
	Key      string   `json:"key"`
	Database Database `json:"database"`
	NATS     NATS     `json:"nats"`
	Table    Table    `json:"table"`
	Stream   Stream   `json:"stream"`
	Server   Server   `json:"server"`
	// PollInterval is the longest time that a committed event waits when no wake-up reaches the relay.
	PollInterval Duration `json:"pollInterval"`
	// BatchSize is the most rows of one claim, 1 to 10000; Claimers is how many claims are in flight at once, 1 to 16.
	BatchSize int `json:"batchSize"`
	Claimers  int `json:"claimers"`
	// ClaimLease bounds the life of one claim: the database ends it then, whatever became of the relay.
	ClaimLease Duration `json:"claimLease"`
	// PublishTimeout bounds one publish, from send to PubAck. It is shorter than ClaimLease.
	PublishTimeout Duration `json:"publishTimeout"`
	// MaxAttempts is how many event-specific failures make a row FAILED, 1 to 1000.
	MaxAttempts int `json:"maxAttempts"`
	// BackOff is how long a row waits after an event-specific failure.
	BackOff BackOff `json:"backOff"`
	// MaxInlinePayloadBytes: a larger payload travels by claim check.
	MaxInlinePayloadBytes int `json:"maxInlinePayloadBytes"`
	// CloudEvents adds CloudEvents 1.0 binary-mode headers.
	CloudEvents bool `json:"cloudEvents,omitempty"`
	// Suspended: the daemon runs and reports, and claims nothing.
	Suspended bool `json:"suspended,omitempty"`
}

// BackOff is exponential: Initial × Multiplier^(n-1) before attempt n+1, at most Max, each with full ±Jitter share.
type BackOff struct {
	Initial    Duration `json:"initial"`
	Max        Duration `json:"max"`
	Multiplier float64  `json:"multiplier"`
	// Jitter is the share by which a delay varies, 0 to 1: delay × (1 ± Jitter).
	Jitter float64 `json:"jitter"`
}

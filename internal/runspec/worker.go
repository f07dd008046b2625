package runspec

import (
	"time"

	"github.com/relayops/relayops/internal/engine"
)

// Worker is everything that a worker daemon needs to know of its one pipeline.
type Worker struct {
	// PipelineKey is <instance of the OutboxRelay>/<namespace>/<name> of the Pipeline.
	PipelineKey string   `json:"pipelineKey"`
	Database    Database `json:"database"`
	NATS        NATS     `json:"nats"`
	// Table is where the outbox is: emit-event writes to it, and a claim check reads from it.
	Table  Table  `json:"table"`
	Stream Stream `json:"stream"`
	Server Server `json:"server"`
	// Consumer is the durable's name.
	Consumer     string       `json:"consumer"`
	Subscription Subscription `json:"subscription"`
	// Definition is the graph; Revision identifies it (hash of the definition).
	Definition engine.Definition `json:"definition"`
	Revision   string            `json:"revision"`
	// Concurrency is how many executions run at once in one worker, 1 to 1000; Replicas is how many workers there
	// are, for the consumer's MaxAckPending.
	Concurrency int `json:"concurrency"`
	Replicas    int `json:"replicas"`
	// MaxAttempts is how often an execution is tried, 1 to 100, and BackOff the wait between attempts.
	MaxAttempts int     `json:"maxAttempts"`
	BackOff     BackOff `json:"backOff"`
	// MaxDeliver is the consumer's hard stop, above MaxAttempts.
	MaxDeliver int `json:"maxDeliver"`
	// LeaseDuration: an execution whose lease is not renewed for so long may be taken over. Renewed at a third of it.
	LeaseDuration Duration `json:"leaseDuration"`
	// StepTimeout bounds each step unless its node says otherwise; PipelineTimeout the time an execution spends
	// executing, waits not counted. 0 means no pipeline timeout.
	StepTimeout     Duration `json:"stepTimeout"`
	PipelineTimeout Duration `json:"pipelineTimeout,omitempty"`
	// Deadline is how long after its event occurred an execution may still be claimed; 0: for ever.
	Deadline Duration `json:"deadline,omitempty"`
	// GracePeriod is how long a SIGTERM may take: at least the longest step's timeout + 5 s.
	GracePeriod Duration `json:"gracePeriod"`
	// DuePollInterval is how often the ledger is asked for due executions, SweepInterval how often for messages that
	// the broker gave up on.
	DuePollInterval Duration   `json:"duePollInterval"`
	SweepInterval   Duration   `json:"sweepInterval"`
	HTTP            HTTPPolicy `json:"http"`
	Suspended       bool       `json:"suspended,omitempty"`
}

// Subscription says which events a pipeline gets.
type Subscription struct {
	// Trigger is the trigger's name, such as order.post; EventTypes the event types that the OutboxRelay maps to it.
	Trigger    string   `json:"trigger"`
	EventTypes []string `json:"eventTypes"`
	// Orgs are exact names; empty: all.
	Orgs []string `json:"orgs,omitempty"`
	// StartFrom: "Now", "Beginning", or "Time" with StartTime. It counts only when the subscription is made.
	StartFrom string     `json:"startFrom"`
	StartTime *time.Time `json:"startTime,omitempty"`
}

// HTTPPolicy is what http-request nodes may reach beyond public addresses.
type HTTPPolicy struct {
	// AllowedCIDRs are private, loopback or link-local ranges that may be dialled all the same.
	AllowedCIDRs []string `json:"allowedCidrs,omitempty"`
	// MaxResponseBytes bounds a response's body, in bytes.
	MaxResponseBytes int64 `json:"maxResponseBytes"`
}

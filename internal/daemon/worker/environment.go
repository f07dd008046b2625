package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/relayops/relayops/internal/daemon/environment"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/runspec"
)

// variables are the environment of a worker without a specification file. docs/worker.md lists them.
type variables struct {
	environment.Connections

	Key          string `env:"RELAYOPS_PIPELINE_KEY" envDefault:"default/default/pipeline"`
	Instance     string `env:"RELAYOPS_INSTANCE" envDefault:"default"`
	Address      string `env:"RELAYOPS_HTTP_ADDRESS" envDefault:":8080"`
	PipelineFile string `env:"PIPELINE_FILE"`

	StreamName    string `env:"STREAM_NAME" envDefault:"RELAYOPS"`
	SubjectPrefix string `env:"STREAM_SUBJECT_PREFIX" envDefault:"events"`

	Trigger    string     `env:"WORKER_TRIGGER" envDefault:"order.post"`
	EventTypes []string   `env:"WORKER_EVENT_TYPES"`
	Orgs       []string   `env:"WORKER_ORGS"`
	StartFrom  string     `env:"WORKER_START_FROM" envDefault:"Now"`
	StartTime  *time.Time `env:"WORKER_START_TIME"`

	Enabled         bool                     `env:"WORKER_ENABLED" envDefault:"true"`
	Concurrency     int                      `env:"WORKER_CONCURRENCY" envDefault:"4"`
	Attempts        int                      `env:"WORKER_ATTEMPTS" envDefault:"5"`
	Replicas        int                      `env:"WORKER_REPLICAS" envDefault:"1"`
	BackOffInitial  environment.Milliseconds `env:"WORKER_BACKOFF_INITIAL_MS" envDefault:"1000"`
	BackOffMax      environment.Milliseconds `env:"WORKER_BACKOFF_MAX_MS" envDefault:"300000"`
	Lease           environment.Milliseconds `env:"WORKER_LEASE_MS" envDefault:"30000"`
	StepTimeout     environment.Milliseconds `env:"WORKER_STEP_TIMEOUT_MS" envDefault:"30000"`
	PipelineTimeout environment.Milliseconds `env:"WORKER_PIPELINE_TIMEOUT_MS"`
	Deadline        environment.Milliseconds `env:"WORKER_DEADLINE_MS"`
	DuePoll         environment.Milliseconds `env:"WORKER_DUE_POLL_INTERVAL_MS" envDefault:"1000"`
	Sweep           environment.Milliseconds `env:"WORKER_SWEEP_INTERVAL_MS" envDefault:"30000"`
	Table           environment.Table        `env:"OUTBOX_TABLE"`

	AllowedCIDRs     []string `env:"HTTP_ALLOWED_CIDRS"`
	MaxResponseBytes int64    `env:"HTTP_MAX_RESPONSE_BYTES" envDefault:"1048576"`
}

const (
	// spareDeliveries is how far the consumer's hard stop lies above the attempts.
	spareDeliveries = 10
	// graceMargin is what a worker needs beyond its longest step to hand the execution back.
	graceMargin = 5 * time.Second
)

// FromEnvironment makes a worker's specification of environment variables, with a default for each but the database's
// and the pipeline's. The error names every variable that is wrong, with what was found and what is allowed.
//
// WORKER_ENABLED=false suspends the worker: it stays subscribed, and takes nothing up.
func FromEnvironment() (runspec.Worker, error) {
	v, err := environment.Parse[variables]()
	if err != nil {
		return runspec.Worker{}, err
	}
	database, err := v.Database()
	definition, fileErr := readPipeline(v.PipelineFile)
	if err = errors.Join(err, fileErr); err != nil {
		return runspec.Worker{}, err
	}
	revision, err := revisionOf(definition)
	if err != nil {
		return runspec.Worker{}, err
	}
	if len(v.EventTypes) == 0 {
		v.EventTypes = []string{eventTypeOf(v.Trigger)}
	}
	return runspec.Worker{
		PipelineKey: v.Key, Database: database, NATS: v.NATS(), Table: runspec.Table(v.Table),
		Stream: runspec.Stream{
			Name: v.StreamName, SubjectPrefix: v.SubjectPrefix, InstanceKey: v.Instance,
		},
		Server: runspec.Server{Address: v.Address}, Consumer: consumerOf(v.Key),
		Subscription: runspec.Subscription{
			Trigger: v.Trigger, EventTypes: v.EventTypes, Orgs: v.Orgs, StartFrom: v.StartFrom, StartTime: v.StartTime,
		},
		Definition: definition, Revision: revision, Concurrency: v.Concurrency, Replicas: v.Replicas,
		MaxAttempts: v.Attempts, MaxDeliver: v.Attempts + spareDeliveries,
		BackOff: runspec.BackOff{
			Initial: v.BackOffInitial.Duration(), Max: v.BackOffMax.Duration(), Multiplier: 2, Jitter: 0.2,
		},
		LeaseDuration: v.Lease.Duration(), StepTimeout: v.StepTimeout.Duration(),
		PipelineTimeout: v.PipelineTimeout.Duration(), Deadline: v.Deadline.Duration(),
		GracePeriod:     longestStep(v.StepTimeout.Duration(), definition) + runspec.Duration(graceMargin),
		DuePollInterval: v.DuePoll.Duration(), SweepInterval: v.Sweep.Duration(),
		HTTP:      runspec.HTTPPolicy{AllowedCIDRs: v.AllowedCIDRs, MaxResponseBytes: v.MaxResponseBytes},
		Suspended: !v.Enabled,
	}, nil
}

// eventTypeOf is the event type of a trigger, by the convention that holds without an OutboxRelay.
func eventTypeOf(trigger string) string {
	if trigger == "order.post" {
		return "OrderConfirmed"
	}
	return strings.TrimPrefix(trigger, "event.")
}

// readPipeline reads a graph from a JSON file. Unknown fields are errors: they are settings that would have no effect.
func readPipeline(path string) (engine.Definition, error) {
	var definition engine.Definition
	if path == "" {
		return definition, errors.New("PIPELINE_FILE: found nothing, allowed: a JSON file with nodes and edges " +
			"(or a whole specification: --spec)")
	}
	err := readJSON("pipeline", path, &definition)
	return definition, err
}

func readJSON(what, path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(content)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%s %s: %w", what, path, err)
	}
	return nil
}

func revisionOf(definition engine.Definition) (string, error) {
	text, err := json.Marshal(definition)
	if err != nil {
		return "", fmt.Errorf("revision of the pipeline: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// consumerOf is a durable's name for a pipeline key, which may not have its slashes.
func consumerOf(key string) string {
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-':
			b.WriteByte(c)
		case c == '/':
			b.WriteByte('_')
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

func longestStep(stepTimeout runspec.Duration, definition engine.Definition) runspec.Duration {
	longest := stepTimeout
	for i := range definition.Nodes {
		longest = max(longest, definition.Nodes[i].Timeout)
	}
	return longest
}

// FromFile reads a specification from a JSON file, as the operator writes it.
func FromFile(path string) (runspec.Worker, error) {
	var spec runspec.Worker
	err := readJSON("worker specification", path, &spec)
	return spec, err
}

// Load reads the specification from the file, or from the environment where path is empty. Then the variables count
// that are named after the trigger: ORDER_POST_ATTEMPTS and ORDER_POST_CONCURRENCY for order.post.
func Load(path string) (spec runspec.Worker, err error) {
	if path != "" {
		spec, err = FromFile(path)
	} else {
		spec, err = FromEnvironment()
	}
	if err != nil {
		return spec, err
	}
	prefix := triggerPrefix(spec.Subscription.Trigger)
	attempts, err := override(prefix+"_ATTEMPTS", spec.MaxAttempts, 100)
	concurrency, concurrencyErr := override(prefix+"_CONCURRENCY", spec.Concurrency, 1000)
	if err := errors.Join(err, concurrencyErr); err != nil {
		return spec, err
	}
	spec.Concurrency, spec.MaxAttempts = concurrency, attempts
	spec.MaxDeliver = max(spec.MaxDeliver, attempts+spareDeliveries)
	return spec, nil
}

// triggerPrefix is a trigger as the beginning of a variable's name: order.post gives ORDER_POST.
func triggerPrefix(trigger string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', 'A' <= r && r <= 'Z':
			return r
		default:
			return '_'
		}
	}, strings.ToUpper(trigger))
}

// override is a variable's whole number from 1 to most, or the value that it has without.
func override(variable string, value, most int) (int, error) {
	text := os.Getenv(variable)
	if text == "" {
		return value, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%s: found %q, allowed: a whole number from 1 to %d", variable, text, most)
	}
	return n, nil
}

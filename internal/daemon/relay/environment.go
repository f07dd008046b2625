package relay

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/relayops/relayops/internal/daemon/environment"
	"github.com/relayops/relayops/internal/runspec"
)

// variables are the environment of a relay without a specification file. docs/relay.md lists them.
type variables struct {
	environment.Connections

	Key      string `env:"RELAYOPS_RELAY_KEY" envDefault:"default/default/relay"`
	Instance string `env:"RELAYOPS_INSTANCE" envDefault:"default"`
	Address  string `env:"RELAYOPS_HTTP_ADDRESS" envDefault:":8080"`

	StreamName      string        `env:"STREAM_NAME" envDefault:"RELAYOPS"`
	SubjectPrefix   string        `env:"STREAM_SUBJECT_PREFIX" envDefault:"events"`
	Replicas        int           `env:"STREAM_REPLICAS" envDefault:"1"`
	MaxBytes        int64         `env:"STREAM_MAX_BYTES" envDefault:"10737418240"`
	MaxAge          time.Duration `env:"STREAM_MAX_AGE" envDefault:"168h"`
	DuplicateWindow time.Duration `env:"STREAM_DUPLICATE_WINDOW" envDefault:"10m"`
	MaxMessageBytes int32         `env:"STREAM_MAX_MESSAGE_BYTES" envDefault:"1048576"`

	Enabled        bool                     `env:"OUTBOX_RELAY_ENABLED" envDefault:"true"`
	PollInterval   environment.Milliseconds `env:"OUTBOX_POLL_INTERVAL_MS" envDefault:"2000"`
	BatchSize      int                      `env:"OUTBOX_BATCH_SIZE" envDefault:"50"`
	Claimers       int                      `env:"OUTBOX_CLAIMERS" envDefault:"2"`
	ClaimLease     environment.Milliseconds `env:"OUTBOX_CLAIM_LEASE_MS" envDefault:"30000"`
	PublishTimeout environment.Milliseconds `env:"OUTBOX_PUBLISH_TIMEOUT_MS" envDefault:"5000"`
	MaxAttempts    int                      `env:"OUTBOX_MAX_ATTEMPTS" envDefault:"10"`
	BackOffInitial environment.Milliseconds `env:"OUTBOX_BACKOFF_INITIAL_MS" envDefault:"1000"`
	BackOffMax     environment.Milliseconds `env:"OUTBOX_BACKOFF_MAX_MS" envDefault:"300000"`
	MaxInline      int                      `env:"OUTBOX_MAX_INLINE_PAYLOAD_BYTES" envDefault:"524288"`
	CloudEvents    bool                     `env:"OUTBOX_CLOUDEVENTS"`
	Table          environment.Table        `env:"OUTBOX_TABLE"`
}

// FromEnvironment makes a relay's specification of environment variables, with a default for each but the database's.
// The error names every variable that is wrong, with what was found and what is allowed.
//
// The database's URL stays in its variable: a specification holds no secret. OUTBOX_RELAY_ENABLED=false suspends the
// relay.
func FromEnvironment() (runspec.Relay, error) {
	v, err := environment.Parse[variables]()
	if err != nil {
		return runspec.Relay{}, err
	}
	database, err := v.Database()
	if err != nil {
		return runspec.Relay{}, err
	}
	return runspec.Relay{
		Key: v.Key, Database: database, NATS: v.NATS(),
		Table: runspec.Table(v.Table),
		Stream: runspec.Stream{
			Name: v.StreamName, SubjectPrefix: v.SubjectPrefix, Replicas: v.Replicas, MaxBytes: v.MaxBytes,
			MaxAge: runspec.Duration(v.MaxAge), DuplicateWindow: runspec.Duration(v.DuplicateWindow),
			MaxMessageBytes: v.MaxMessageBytes, InstanceKey: v.Instance,
		},
		Server:       runspec.Server{Address: v.Address},
		PollInterval: v.PollInterval.Duration(), BatchSize: v.BatchSize, Claimers: v.Claimers,
		ClaimLease: v.ClaimLease.Duration(), PublishTimeout: v.PublishTimeout.Duration(), MaxAttempts: v.MaxAttempts,
		BackOff: runspec.BackOff{
			Initial: v.BackOffInitial.Duration(), Max: v.BackOffMax.Duration(), Multiplier: 2, Jitter: 0.2,
		},
		MaxInlinePayloadBytes: v.MaxInline, CloudEvents: v.CloudEvents, Suspended: !v.Enabled,
	}, nil
}

// FromFile reads a specification from a JSON file, as the operator writes it. Unknown fields are errors: they are
// settings that would have no effect.
func FromFile(path string) (runspec.Relay, error) {
	var spec runspec.Relay
	content, err := os.ReadFile(path)
	if err != nil {
		return spec, fmt.Errorf("relay specification: %w", err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(content)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&spec); err != nil {
		return spec, fmt.Errorf("relay specification %s: %w", path, err)
	}
	return spec, nil
}

// Load reads the specification from the file, or from the environment where path is empty.
func Load(path string) (runspec.Relay, error) {
	if path != "" {
		return FromFile(path)
	}
	return FromEnvironment()
}

package relay

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/relayops/relayops/internal/runspec"
)

// milliseconds is a duration that a variable gives as a whole number of milliseconds.
type milliseconds int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *milliseconds) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 0 {
		return errors.New("a whole number of milliseconds, 0 or more")
	}
	*m = milliseconds(n)
	return nil
}

func (m milliseconds) duration() runspec.Duration {
	return runspec.Duration(time.Duration(m) * time.Millisecond)
}

// tableMapping is a runspec.Table as JSON.
type tableMapping runspec.Table

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *tableMapping) UnmarshalText(text []byte) error {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode((*runspec.Table)(t)); err != nil {
		return fmt.Errorf(`JSON such as {"schema": "public", "name": "outbox", "columns": {"event_id": "id"}} (%w)`, err)
	}
	return nil
}

// variables are the environment of a relay without a specification file. docs/relay.md lists them.
type variables struct {
	Key      string `env:"RELAYOPS_RELAY_KEY" envDefault:"default/default/relay"`
	Instance string `env:"RELAYOPS_INSTANCE" envDefault:"default"`
	Address  string `env:"RELAYOPS_HTTP_ADDRESS" envDefault:":8080"`

	DatabaseURL      string `env:"DATABASE_URL"`
	DatabaseURLFile  string `env:"DATABASE_URL_FILE"`
	ListenURLFile    string `env:"DATABASE_LISTEN_URL_FILE"`
	DisableListen    bool   `env:"DATABASE_DISABLE_LISTEN"`
	MaxConnections   int32  `env:"DATABASE_MAX_CONNECTIONS" envDefault:"10"`
	NATSURL          string `env:"NATS_URL" envDefault:"nats://127.0.0.1:4222"`
	NATSCredsFile    string `env:"NATS_CREDS_FILE"`
	NATSUserFile     string `env:"NATS_USER_FILE"`
	NATSPasswordFile string `env:"NATS_PASSWORD_FILE"`
	NATSTokenFile    string `env:"NATS_TOKEN_FILE"`
	NATSCAFile       string `env:"NATS_CA_FILE"`
	NATSCertFile     string `env:"NATS_CERT_FILE"`
	NATSKeyFile      string `env:"NATS_KEY_FILE"`

	StreamName      string        `env:"STREAM_NAME" envDefault:"RELAYOPS"`
	SubjectPrefix   string        `env:"STREAM_SUBJECT_PREFIX" envDefault:"events"`
	Replicas        int           `env:"STREAM_REPLICAS" envDefault:"1"`
	MaxBytes        int64         `env:"STREAM_MAX_BYTES" envDefault:"10737418240"`
	MaxAge          time.Duration `env:"STREAM_MAX_AGE" envDefault:"168h"`
	DuplicateWindow time.Duration `env:"STREAM_DUPLICATE_WINDOW" envDefault:"10m"`
	MaxMessageBytes int32         `env:"STREAM_MAX_MESSAGE_BYTES" envDefault:"1048576"`

	Enabled        bool         `env:"OUTBOX_RELAY_ENABLED" envDefault:"true"`
	PollInterval   milliseconds `env:"OUTBOX_POLL_INTERVAL_MS" envDefault:"2000"`
	BatchSize      int          `env:"OUTBOX_BATCH_SIZE" envDefault:"50"`
	Claimers       int          `env:"OUTBOX_CLAIMERS" envDefault:"2"`
	ClaimLease     milliseconds `env:"OUTBOX_CLAIM_LEASE_MS" envDefault:"30000"`
	PublishTimeout milliseconds `env:"OUTBOX_PUBLISH_TIMEOUT_MS" envDefault:"5000"`
	MaxAttempts    int          `env:"OUTBOX_MAX_ATTEMPTS" envDefault:"10"`
	BackOffInitial milliseconds `env:"OUTBOX_BACKOFF_INITIAL_MS" envDefault:"1000"`
	BackOffMax     milliseconds `env:"OUTBOX_BACKOFF_MAX_MS" envDefault:"300000"`
	MaxInline      int          `env:"OUTBOX_MAX_INLINE_PAYLOAD_BYTES" envDefault:"524288"`
	CloudEvents    bool         `env:"OUTBOX_CLOUDEVENTS"`
	Table          tableMapping `env:"OUTBOX_TABLE"`
}

// FromEnvironment makes a relay's specification of environment variables, with a default for each but the database's.
// The error names every variable that is wrong, with what was found and what is allowed.
//
// The database's URL stays in its variable: a specification holds no secret. OUTBOX_RELAY_ENABLED=false suspends the
// relay.
func FromEnvironment() (runspec.Relay, error) {
	v, err := env.ParseAs[variables]()
	if err != nil {
		return runspec.Relay{}, explainVariables(err)
	}
	spec := runspec.Relay{
		Key: v.Key,
		Database: runspec.Database{
			URLFile: v.DatabaseURLFile, ListenURLFile: v.ListenURLFile, DisableListen: v.DisableListen,
			MaxConnections: v.MaxConnections,
		},
		NATS: runspec.NATS{
			URL: v.NATSURL, CredsFile: v.NATSCredsFile, UserFile: v.NATSUserFile, PasswordFile: v.NATSPasswordFile,
			TokenFile: v.NATSTokenFile, CAFile: v.NATSCAFile, CertFile: v.NATSCertFile, KeyFile: v.NATSKeyFile,
		},
		Table: runspec.Table(v.Table),
		Stream: runspec.Stream{
			Name: v.StreamName, SubjectPrefix: v.SubjectPrefix, Replicas: v.Replicas, MaxBytes: v.MaxBytes,
			MaxAge: runspec.Duration(v.MaxAge), DuplicateWindow: runspec.Duration(v.DuplicateWindow),
			MaxMessageBytes: v.MaxMessageBytes, InstanceKey: v.Instance,
		},
		Server:       runspec.Server{Address: v.Address},
		PollInterval: v.PollInterval.duration(), BatchSize: v.BatchSize, Claimers: v.Claimers,
		ClaimLease: v.ClaimLease.duration(), PublishTimeout: v.PublishTimeout.duration(), MaxAttempts: v.MaxAttempts,
		BackOff: runspec.BackOff{
			Initial: v.BackOffInitial.duration(), Max: v.BackOffMax.duration(), Multiplier: 2, Jitter: 0.2,
		},
		MaxInlinePayloadBytes: v.MaxInline, CloudEvents: v.CloudEvents, Suspended: !v.Enabled,
	}
	switch {
	case v.DatabaseURL != "" && v.DatabaseURLFile != "":
		return spec, errors.New("DATABASE_URL and DATABASE_URL_FILE: found both, allowed: one of them")
	case v.DatabaseURL != "":
		spec.Database.URLEnv = "DATABASE_URL"
	case v.DatabaseURLFile == "":
		return spec, errors.New("DATABASE_URL: found nothing, allowed: a PostgreSQL URL, such as " +
			"postgres://user@host:5432/database (or DATABASE_URL_FILE, a file that holds one)")
	}
	return spec, nil
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

// explainVariables names the variables: the library names the fields.
func explainVariables(err error) error {
	var all env.AggregateError
	if !errors.As(err, &all) {
		return err
	}
	names := make(map[string]string)
	if fields, fieldsErr := env.GetFieldParams(&variables{}); fieldsErr == nil {
		for i, field := range fields {
			names[fieldName(i)] = field.Key
		}
	}
	explained := make([]error, 0, len(all.Errors))
	for _, one := range all.Errors {
		var parse env.ParseError
		if !errors.As(one, &parse) || names[parse.Name] == "" {
			explained = append(explained, one)
			continue
		}
		key := names[parse.Name]
		explained = append(explained, fmt.Errorf("%s: found %q, allowed: %s", key, os.Getenv(key), allowed(parse)))
	}
	return errors.Join(explained...)
}

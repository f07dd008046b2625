package runspec

// Database says how a daemon reaches PostgreSQL. Exactly one of URL, URLFile and URLEnv is set; URL only where it
// holds no password (tests, relayops dev).
type Database struct {
	// URL is a PostgreSQL connection URI or keyword/value string.
	URL string `json:"url,omitempty"`
	// URLFile is a file that holds it, such as a mounted Secret's key. It is read again when a connection is made,
	// so a rotated Secret is followed.
	URLFile string `json:"urlFile,omitempty"`
	// URLEnv is an environment variable that holds it.
	URLEnv string `json:"urlEnv,omitempty"`
	// ListenURLFile is a direct DSN for LISTEN where the main one goes through PgBouncer in transaction mode. Empty:
	// the main one is used.
	ListenURLFile string `json:"listenUrlFile,omitempty"`
	// MaxConnections bounds the pool, 2 to 1000.
	MaxConnections int32 `json:"maxConnections"`
	// DisableListen switches the LISTEN wake-up off: polling alone. For PgBouncer in transaction mode without a
	// direct DSN.
	DisableListen bool `json:"disableListen,omitempty"`
}

// NATS says how a daemon reaches the broker.
type NATS struct {
	// URL is one or more server URLs, separated by commas.
	URL string `json:"url"`
	// CredsFile is a NATS credentials file (JWT and NKey seed).
	CredsFile string `json:"credsFile,omitempty"`
	// UserFile and PasswordFile hold a user and a password; TokenFile a token.
	UserFile     string `json:"userFile,omitempty"`
	PasswordFile string `json:"passwordFile,omitempty"`
	TokenFile    string `json:"tokenFile,omitempty"`
	// CAFile, CertFile and KeyFile are PEM files for TLS.
	CAFile   string `json:"caFile,omitempty"`
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
}

// Stream is the JetStream stream that an OutboxRelay publishes to.
type Stream struct {
	// Name of the stream, such as RELAYOPS.
	Name string `json:"name"`
	// SubjectPrefix is the first token, or tokens, of every subject: <prefix>.<org>.<EventType>.
	SubjectPrefix string `json:"subjectPrefix"`
	// Replicas, 1 to 5.
	Replicas int `json:"replicas"`
	// MaxBytes bounds the stream, in bytes; MaxAge the age of a message.
	MaxBytes int64    `json:"maxBytes"`
	MaxAge   Duration `json:"maxAge"`
	// DuplicateWindow is how long the broker remembers message ids. It exceeds claim lease + publish timeout + poll
	// interval.
	DuplicateWindow Duration `json:"duplicateWindow"`
	// MaxMessageBytes bounds one message.
	MaxMessageBytes int32 `json:"maxMessageBytes"`
	// InstanceKey marks the stream with its owner in the metadata key relayops.io/instance: the OutboxRelay's
	// immutable instance.
	InstanceKey string `json:"instanceKey"`
}

// Server is the daemon's own HTTP endpoint: /healthz, /readyz, /metrics, /status.
type Server struct {
	// Address to listen at, such as ":8080"; empty: no endpoint.
	Address string `json:"address,omitempty"`
	// StatusKey is the Ed25519 public key, in base64, that tokens of status calls are verified with; empty: /status is
	// open, as on one machine.
	StatusKey string `json:"statusKey,omitempty"`
	// StatusAudience is the audience that such a token has to have: namespace/name of the OutboxRelay or Pipeline.
	StatusAudience string `json:"statusAudience,omitempty"`
}

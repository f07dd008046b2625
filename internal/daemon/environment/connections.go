package environment

import (
	"errors"

	"github.com/relayops/relayops/internal/runspec"
)

// Connections are the variables of the two connections that every daemon has.
type Connections struct {
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
}

// Database is how the database is reached. The URL stays in its variable: a specification holds no secret.
func (c *Connections) Database() (runspec.Database, error) {
	database := runspec.Database{
		URLFile: c.DatabaseURLFile, ListenURLFile: c.ListenURLFile, DisableListen: c.DisableListen,
		MaxConnections: c.MaxConnections,
	}
	switch {
	case c.DatabaseURL != "" && c.DatabaseURLFile != "":
		return database, errors.New("DATABASE_URL and DATABASE_URL_FILE: found both, allowed: one of them")
	case c.DatabaseURL != "":
		database.URLEnv = "DATABASE_URL"
	case c.DatabaseURLFile == "":
		return database, errors.New("DATABASE_URL: found nothing, allowed: a PostgreSQL URL, such as " +
			"postgres://user@host:5432/database (or DATABASE_URL_FILE, a file that holds one)")
	}
	return database, nil
}

// NATS is how the broker is reached.
func (c *Connections) NATS() runspec.NATS {
	return runspec.NATS{
		URL: c.NATSURL, CredsFile: c.NATSCredsFile, UserFile: c.NATSUserFile, PasswordFile: c.NATSPasswordFile,
		TokenFile: c.NATSTokenFile, CAFile: c.NATSCAFile, CertFile: c.NATSCertFile, KeyFile: c.NATSKeyFile,
	}
}

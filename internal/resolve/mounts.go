package resolve

import (
	"path"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/runspec"
)

// Mounts is what a resource cannot say and the place where a daemon runs decides.
type Mounts struct {
	// SecretDir is where Secrets are mounted: the key K of the Secret S is the file SecretDir/S/K.
	SecretDir string
	// Database and NATS replace the connections that the resources name, for relayops dev. Database.MaxConnections
	// is taken from the resource where it is 0 here.
	Database *runspec.Database
	NATS     *runspec.NATS
	// ServerAddress is where a daemon listens for its own endpoint, such as ":8080"; empty: none.
	ServerAddress string
}

func (m Mounts) file(ref *v1alpha1.SecretKeyRef) string {
	if ref == nil {
		return ""
	}
	return path.Join(m.SecretDir, ref.Name, ref.Key)
}

func (m Mounts) database(spec v1alpha1.DatabaseConnection) runspec.Database {
	if m.Database != nil {
		database := *m.Database
		if database.MaxConnections == 0 {
			database.MaxConnections = spec.MaxConnections
		}
		return database
	}
	return runspec.Database{
		URLFile:        m.file(&spec.URLSecretRef),
		ListenURLFile:  m.file(spec.ListenURLSecretRef),
		MaxConnections: spec.MaxConnections,
		DisableListen:  value(spec.DisableListen),
	}
}

func (m Mounts) nats(spec v1alpha1.NATSConnection) runspec.NATS {
	if m.NATS != nil {
		return *m.NATS
	}
	nats := runspec.NATS{
		URL:          spec.URL,
		CredsFile:    m.file(spec.CredsSecretRef),
		UserFile:     m.file(spec.UserSecretRef),
		PasswordFile: m.file(spec.PasswordSecretRef),
		TokenFile:    m.file(spec.TokenSecretRef),
	}
	if spec.TLS != nil {
		nats.CAFile = m.file(spec.TLS.CASecretRef)
		nats.CertFile = m.file(spec.TLS.CertSecretRef)
		nats.KeyFile = m.file(spec.TLS.KeySecretRef)
	}
	return nats
}

// value is what a pointer points to, or the zero value.
func value[T any](pointer *T) T {
	if pointer == nil {
		var zero T
		return zero
	}
	return *pointer
}

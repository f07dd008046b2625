// Package database holds the flags by which relayops commands find their database: --database-url, DATABASE_URL, or
// the relayops dev that runs in the same directory.
package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/relayops/relayops/internal/connect"
	"github.com/relayops/relayops/internal/devstate"
	"github.com/relayops/relayops/internal/runspec"
)

// EnvironmentVariable that holds a database URL.
const EnvironmentVariable = "DATABASE_URL"

// connectTimeout bounds the first connection of a command: somebody waits for it.
const connectTimeout = 10 * time.Second

// Flags are the flags of one command.
type Flags struct{ url, dataDir string }

// Add adds the flags to a command.
func Add(cmd *cobra.Command) *Flags {
	f := &Flags{}
	cmd.Flags().StringVar(&f.url, "database-url", "",
		"PostgreSQL URL (default: $DATABASE_URL, or the relayops dev of this directory)")
	cmd.Flags().StringVar(&f.dataDir, "data-dir", devstate.DefaultDir,
		"data directory of the relayops dev to look at")
	return f
}

// Source is where a database was found.
type Source struct {
	URL string
	// From says which of the three it was, for messages.
	From string
	// Tables are the outbox tables of the relays there, by relay key, where relayops dev told; else nil: the standard
	// table.
	Tables map[string]runspec.Table
	// devPID is the relayops dev that told, 0 for the other two.
	devPID int
}

// Find says which database the flags, the environment and the data directory name, in this order.
func (f *Flags) Find() (Source, error) {
	if f.url != "" {
		return Source{URL: f.url, From: "--database-url"}, nil
	}
	if url := os.Getenv(EnvironmentVariable); url != "" {
		return Source{URL: url, From: EnvironmentVariable}, nil
	}
	state, err := devstate.ReadOrNone(f.dataDir)
	if err != nil {
		return Source{}, err
	}
	if state.DatabaseURL == "" {
		return Source{}, fmt.Errorf("no database named: pass --database-url, set %s, or work in the directory where "+
			"relayops dev runs (%s is not there)", EnvironmentVariable, devstate.Path(f.dataDir))
	}
	return Source{
		URL: state.DatabaseURL, From: devstate.Path(f.dataDir), Tables: state.Tables, devPID: state.PID,
	}, nil
}

// Connect opens one connection to the database that [Flags.Find] names. Its errors say what to do. The caller closes
// the connection.
func (f *Flags) Connect(ctx context.Context) (*pgx.Conn, Source, error) {
	source, err := f.Find()
	if err != nil {
		return nil, Source{}, err
	}
	config, err := pgx.ParseConfig(source.URL)
	if err != nil {
		return nil, source, fmt.Errorf("database URL from %s: %w", source.From, err)
	}
	config.RuntimeParams["application_name"] = "relayops"
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, source, source.explain(err)
	}
	return conn, source, nil
}

func (s Source) explain(err error) error {
	if s.devPID != 0 && errors.Is(err, syscall.ECONNREFUSED) && !alive(s.devPID) {
		return fmt.Errorf("the relayops dev (process %d) that %s tells of has ended: start it again: %w",
			s.devPID, s.From, err)
	}
	return fmt.Errorf("database from %s: %w", s.From, connect.Explain(err))
}

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

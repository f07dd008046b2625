package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/internal/connect"
	"github.com/relayops/relayops/internal/devstate"
	"github.com/relayops/relayops/internal/localnats"
	"github.com/relayops/relayops/internal/localpostgres"
	"github.com/relayops/relayops/internal/schema"
)

const (
	// guardInterval is how often the embedded broker is asked whether it takes messages.
	guardInterval = 2 * time.Second
	// migrateTimeout bounds the migrations; another process may be at them.
	migrateTimeout = 2 * time.Minute
	// privateConnections is for some dozens of pipelines, each with a pool.
	privateConnections = "300"
)

// servers are the two servers under the daemons.
type servers struct {
	nats *localnats.Server
	// postgres is nil where the database is somebody else's.
	postgres    *localpostgres.Server
	databaseURL string
	// database says in words which one it is.
	database string
	log      *slog.Logger
}

// startServers starts what is to be started, or leaves nothing running.
func startServers(ctx context.Context, options Options) (*servers, error) {
	s := &servers{log: options.Log, databaseURL: options.DatabaseURL, database: "named by DATABASE_URL"}
	if err := s.startNATS(ctx, options); err != nil {
		return nil, err
	}
	if options.DatabaseURL == "" {
		if err := s.startPostgres(ctx, options); err != nil {
			return nil, errors.Join(err, s.stop(ctx))
		}
	}
	if err := migrate(ctx, s.databaseURL, options.Log); err != nil {
		return nil, errors.Join(err, s.stop(ctx))
	}
	return s, nil
}

// startNATS prefers the port that an earlier run had: applications may have it in their configuration.
func (s *servers) startNATS(ctx context.Context, options Options) error {
	start := func(port int) (err error) {
		s.nats, err = localnats.Start(ctx, localnats.Options{
			Dir: natsDir(options.DataDir), Port: port, Log: options.Log.With("server", "nats"),
		})
		return err
	}
	if options.NATSPort != 0 {
		return start(options.NATSPort)
	}
	err := start(portBefore(options.DataDir))
	if _, taken := errors.AsType[*localnats.PortTakenError](err); taken {
		return start(0)
	}
	return err
}

func natsDir(dataDir string) string { return filepath.Join(dataDir, "nats") }

// portBefore is the broker's port in an earlier run on the directory, 0 if there was none.
func portBefore(dataDir string) int {
	state, err := devstate.Read(dataDir)
	if err != nil {
		return 0
	}
	address, err := url.Parse(state.NATSURL)
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		return 0
	}
	return port
}

func (s *servers) startPostgres(ctx context.Context, options Options) error {
	dir, elsewhere, err := postgresPlace(options.DataDir)
	if err != nil {
		return err
	}
	s.database = "private PostgreSQL in " + dir
	if elsewhere {
		s.database += ", for its account cannot get to " + options.DataDir
	}
	s.postgres, err = localpostgres.Start(ctx, localpostgres.Options{
		Dir: dir, Port: options.PostgresPort, Settings: map[string]string{"max_connections": privateConnections},
	})
	if err != nil {
		return fmt.Errorf("start a private PostgreSQL: %w", err)
	}
	s.databaseURL = s.postgres.URL()
	return nil
}

func migrate(ctx context.Context, databaseURL string, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return connect.Explain(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	applied, err := schema.Migrate(ctx, conn)
	for _, migration := range applied {
		log.Debug("migration applied", "version", migration.Version, "name", migration.Name)
	}
	return connect.Explain(err)
}

// guard starts a server again that died or takes no messages more, until ctx ends. The daemons wait meanwhile: an
// outage burns no attempt.
func (s *servers) guard(ctx context.Context) {
	ticker := time.NewTicker(guardInterval)
	defer ticker.Stop()
	impaired := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.postgresExited():
			s.log.Error("PostgreSQL ended; it is started again")
			if err := s.postgres.Restart(ctx); err != nil && ctx.Err() == nil {
				s.log.Error("PostgreSQL does not start", "error", err)
			}
			waitOrDone(ctx, guardInterval)
		case <-ticker.C:
			impaired = s.guardNATS(ctx, impaired)
		}
	}
}

// postgresExited never happens where there is no PostgreSQL of ours.
func (s *servers) postgresExited() <-chan struct{} {
	if s.postgres == nil {
		return nil
	}
	return s.postgres.Exited()
}

// guardNATS counts how often in a row the broker took no messages. The second time in a row is believed.
func (s *servers) guardNATS(ctx context.Context, impaired int) int {
	err := s.nats.Check()
	if err == nil {
		return 0
	}
	if impaired++; impaired < 2 {
		return impaired
	}
	if impaired == 2 {
		s.log.Error("the broker takes no messages; events wait in the outbox", "error", err)
	}
	if _, full := errors.AsType[*localnats.DiskFullError](err); full {
		return impaired
	}
	if err := s.nats.Restart(ctx); err != nil {
		s.log.Error("the broker does not start", "error", err)
		return impaired
	}
	s.log.Info("the broker was started again")
	return 0
}

func waitOrDone(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// stop ends the servers that were started. It does its work although ctx has ended.
func (s *servers) stop(ctx context.Context) error {
	var err error
	if s.nats != nil {
		err = s.nats.Stop()
	}
	if s.postgres != nil {
		err = errors.Join(err, s.postgres.Stop(context.WithoutCancel(ctx)))
	}
	return err
}

// removeData removes what earlier runs left, for a fresh start. The caller holds the data directory's lock.
func removeData(options Options) error {
	if err := os.RemoveAll(natsDir(options.DataDir)); err != nil {
		return fmt.Errorf("remove the old stream: %w", err)
	}
	if options.DatabaseURL != "" {
		return nil
	}
	dir, _, err := postgresPlace(options.DataDir)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the old database: %w", err)
	}
	return nil
}

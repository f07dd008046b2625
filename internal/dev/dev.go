package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/relayops/relayops/internal/devstate"
	"github.com/relayops/relayops/internal/filelock"
	"github.com/relayops/relayops/internal/resolve"
	"github.com/relayops/relayops/internal/runspec"
)

// Options say what to run, and where.
type Options struct {
	// Manifests are files and directories of custom resources, at least one.
	Manifests []string
	// DataDir is where stream, database, lock and state lie; it is made.
	DataDir string
	// DatabaseURL of a database to use; empty: a private PostgreSQL.
	DatabaseURL string
	// NATSPort and PostgresPort on 127.0.0.1; 0: the one used before, or a free one.
	NATSPort, PostgresPort int
	// Fresh removes the data of earlier runs first.
	Fresh bool
	// Out is where a person reads what happens.
	Out     io.Writer
	Log     *slog.Logger
	Daemons Daemons
	Now     func() time.Time
}

// InUseError says that another relayops dev runs on the data directory.
type InUseError struct {
	DataDir string
	// PID of it, 0 if it is not known.
	PID int
}

func (i *InUseError) Error() string {
	return fmt.Sprintf("another relayops dev (process %d) runs on %s: stop it, or choose another --data-dir",
		i.PID, i.DataDir)
}

// Run runs the manifests until ctx ends, then drains the daemons and stops the servers. Its error is a
// [manifest.Problems] if they have mistakes, and then nothing was started; an [InUseError]; or what kept a server from
// starting, with what to do about it.
func Run(ctx context.Context, options Options) (err error) {
	if _, problems := Load(connections("", ""), options.Manifests...); len(problems) > 0 {
		return problems
	}
	lock, err := acquire(options.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if options.Fresh {
		if err := removeData(options); err != nil {
			return err
		}
	}
	started, err := startServers(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, started.stop(ctx)) }()
	return (&instance{options: options, servers: started}).run(ctx)
}

func acquire(dataDir string) (*filelock.Lock, error) {
	if err := os.MkdirAll(dataDir, 0o755); err != nil { //nolint:gosec // PostgreSQL's own account has to pass.
		return nil, fmt.Errorf("data directory: %w", err)
	}
	lock, err := filelock.Acquire(filepath.Join(dataDir, "lock"))
	if held, isHeld := errors.AsType[*filelock.HeldError](err); isHeld {
		return nil, &InUseError{DataDir: dataDir, PID: held.PID}
	}
	return lock, err
}

func connections(databaseURL, natsURL string) resolve.Mounts {
	return resolve.Mounts{Database: &runspec.Database{URL: databaseURL}, NATS: &runspec.NATS{URL: natsURL}}
}

// instance is a run whose servers are up.
type instance struct {
	options    Options
	servers    *servers
	supervisor *supervisor
}

func (i *instance) run(ctx context.Context) error {
	desired, err := i.load()
	if err != nil {
		return err // They were edited while the servers started.
	}
	watcher, err := watch(i.options.Log, i.options.Manifests...)
	if err != nil {
		return err
	}
	i.supervisor = newSupervisor(i.options.Daemons, i.options.Log)
	var background sync.WaitGroup
	defer background.Wait()
	// The guard outlives the daemons: they need the servers to drain.
	guarded, stopGuard := context.WithCancel(context.WithoutCancel(ctx))
	defer stopGuard()
	background.Go(func() { i.servers.guard(guarded) })
	background.Go(func() { watcher.run(ctx) })
	defer i.supervisor.wait()

	if _, err := i.supervisor.apply(ctx, desired); err != nil {
		return err
	}
	if err := i.writeState(desired); err != nil {
		return err
	}
	i.sayReady(desired)
	for {
		select {
		case <-ctx.Done():
			i.say("stopping: executions in hand are finished or handed back; once more to stop hard")
			return nil
		case <-watcher.changed:
			i.reload(ctx)
		}
	}
}

func (i *instance) load() (Desired, error) {
	desired, problems := Load(connections(i.servers.databaseURL, i.servers.nats.URL()), i.options.Manifests...)
	return desired, problems.Err()
}

// reload applies changed manifests. Mistakes are told, and what runs stays.
func (i *instance) reload(ctx context.Context) {
	desired, err := i.load()
	if err != nil {
		i.say("the manifests have mistakes; what runs stays as it was:\n%v", err)
		return
	}
	changed, err := i.supervisor.apply(ctx, desired)
	if err == nil && len(changed) > 0 {
		err = i.writeState(desired)
	}
	for _, one := range changed {
		i.say("%s", one)
	}
	if err != nil {
		i.options.Log.Error("reload", "error", err)
	}
}

func (i *instance) writeState(desired Desired) error {
	return devstate.Write(i.options.DataDir, devstate.State{
		PID: os.Getpid(), Manifests: strings.Join(i.options.Manifests, ", "), DatabaseURL: i.servers.databaseURL,
		NATSURL: i.servers.nats.URL(), Tables: desired.Tables(), StartedAt: i.options.Now().UTC(),
	})
}

func (i *instance) sayReady(desired Desired) {
	for _, note := range desired.Notes {
		i.say("%s", note)
	}
	i.say("relayops dev runs %s of %s", desired, strings.Join(i.options.Manifests, ", "))
	i.say("")
	i.say("  database  %s", i.servers.database)
	i.say("            psql '%s'", i.servers.databaseURL)
	i.say("  broker    NATS %s", i.servers.nats.URL())
	i.say("")
	i.say("Point an application at it:  export DATABASE_URL='%s'", i.servers.databaseURL)
	i.say("Manifests are watched; Ctrl-C stops.")
}

func (i *instance) say(format string, args ...any) {
	_, _ = fmt.Fprintf(i.options.Out, format+"\n", args...) // Nobody reads: nothing to do about it.
}

package localnats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/relayops/relayops/internal/filelock"
)

const (
	host = "127.0.0.1"
	// minFreeBytes is what a server needs to begin: a few message blocks of JetStream.
	minFreeBytes = 64 << 20
	// Streams reserve their maxBytes. On a developer's machine the disk itself is the limit, not the reservations:
	// the server promises more than any disk holds, and a full disk is found by writing, and by Check.
	maxStoreBytes  = 1 << 50
	maxMemoryBytes = 1 << 30
	startTimeout   = 30 * time.Second
)

// Options say what server to run.
type Options struct {
	// Dir is the server's own directory.
	Dir string
	// Port to listen at on 127.0.0.1; 0: a free one.
	Port int
	// Log gets the server's warnings and errors; its notices at debug level.
	Log *slog.Logger
}

// Server is a running server.
type Server struct {
	options Options
	lock    *filelock.Lock
	running *server.Server
	log     *logAdapter
}

// Start runs a server and returns when it accepts connections and has recovered its store. Its errors are
// [PortTakenError], [InUseError], [DiskFullError], or say what else failed.
func Start(ctx context.Context, options Options) (*Server, error) {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, fmt.Errorf("make %s absolute: %w", options.Dir, err)
	}
	options.Dir = dir
	if err := os.MkdirAll(options.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of the NATS store: %w", err)
	}
	lock, err := filelock.Acquire(filepath.Join(options.Dir, "lock"))
	if err != nil {
		if held, isHeld := errors.AsType[*filelock.HeldError](err); isHeld {
			return nil, &InUseError{Dir: options.Dir, PID: held.PID}
		}
		return nil, fmt.Errorf("lock the NATS store: %w", err)
	}
	s := &Server{options: options, lock: lock}
	if err := s.launch(ctx); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	s.options.Port = s.Port()
	return s, nil
}

// URL that clients connect to.
func (s *Server) URL() string { return "nats://" + net.JoinHostPort(host, strconv.Itoa(s.Port())) }

// Port that the server listens at.
func (s *Server) Port() int {
	address, ok := s.running.Addr().(*net.TCPAddr)
	if !ok {
		return s.options.Port
	}
	return address.Port
}

// Check reports why JetStream does not take messages: a [DiskFullError], an [ImpairedError], or nil if it does. A
// stream that is being made can look impaired for a moment: believe the second Check in a row.
func (s *Server) Check() error {
	health := s.running.Healthz(&server.HealthzOptions{})
	if health.Status == "ok" {
		return nil
	}
	if err := s.checkRoom(); err != nil {
		return err
	}
	return &ImpairedError{Dir: s.options.Dir, Reason: health.Error}
}

// Restart stops the server and runs it again on the same port and store. After a failed write JetStream takes no
// message more until it is restarted, also when the disk has room again. On an
// error the server stays stopped; Restart may be tried again.
func (s *Server) Restart(ctx context.Context) error {
	s.shutdown()
	return s.launch(ctx)
}

// Stop ends the server in order and gives its directory up.
func (s *Server) Stop() error {
	s.shutdown()
	return s.lock.Release()
}

func (s *Server) shutdown() {
	s.running.Shutdown()
	s.running.WaitForShutdown()
}

func (s *Server) launch(ctx context.Context) error {
	if err := s.checkRoom(); err != nil {
		return err
	}
	if err := checkPort(ctx, s.options.Port); err != nil {
		return err
	}
	port := s.options.Port
	if port == 0 {
		port = server.RANDOM_PORT
	}
	running, err := server.NewServer(&server.Options{
		ServerName: "relayops-dev", Host: host, Port: port,
		JetStream: true, StoreDir: s.options.Dir, SyncAlways: true,
		JetStreamMaxStore: maxStoreBytes, JetStreamMaxMemory: maxMemoryBytes,
		NoSigs: true, NoLog: true,
	})
	if err != nil {
		return fmt.Errorf("configure NATS: %w", err)
	}
	s.log = &logAdapter{to: s.options.Log}
	running.SetLoggerV2(s.log, false, false, false)
	s.running = running
	running.Start()
	if err := s.await(ctx); err != nil {
		s.shutdown()
		return err
	}
	return nil
}

// await returns when the server is ready, or failed to start: its log is the only place where it says so.
func (s *Server) await(ctx context.Context) error {
	if fatal := s.log.fatal(); fatal != "" {
		return fmt.Errorf("start NATS on %s: %s", s.options.Dir, fatal)
	}
	ready := s.running.ReadyForConnections(startTimeout)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("start NATS: %w", err)
	}
	if !ready {
		return fmt.Errorf("NATS on %s is not ready after %s: %s", s.options.Dir, startTimeout, s.log.lastError())
	}
	if !s.running.JetStreamEnabled() {
		return &ImpairedError{Dir: s.options.Dir, Reason: s.log.lastError()}
	}
	return nil
}

func (s *Server) checkRoom() error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(s.options.Dir, &disk); err != nil {
		return fmt.Errorf("free room of %s: %w", s.options.Dir, err)
	}
	free := uint64(disk.Bavail) * uint64(disk.Bsize) //nolint:unconvert // The types differ between systems.
	if free < minFreeBytes {
		return &DiskFullError{Dir: s.options.Dir, FreeBytes: free}
	}
	return nil
}

// checkPort finds a taken port before the server does, which would only log it.
func checkPort(ctx context.Context, port int) error {
	if port == 0 {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return &PortTakenError{Port: port}
	}
	if err != nil {
		return fmt.Errorf("NATS cannot listen at %s:%d: %w", host, port, err)
	}
	if err := listener.Close(); err != nil {
		return fmt.Errorf("free port %d: %w", port, err)
	}
	return nil
}

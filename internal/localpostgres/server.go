package localpostgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// superuser is the role and the database that initdb and Start make.
const superuser = "relayops"

// Options say what server to run.
type Options struct {
	// Dir is the server's own directory: data, password and log lie below it.
	Dir string
	// Port to listen at on 127.0.0.1; 0: the port used before, or a free one.
	Port int
	// Settings are passed as -c name=value, such as "fsync": "off" for tests.
	Settings map[string]string
	// StartTimeout bounds the wait for the server, crash recovery included; 0: a minute.
	StartTimeout time.Duration
}

// Server is a running server.
type Server struct {
	options Options
	bin     string
	who     account
	port    int
	process *os.Process
	exited  chan struct{} // closed when the postmaster is gone
}

// Start initialises the directory if it is new, and runs the server. It returns when the server answers. Its error
// says what to do where that is known: PostgreSQL not installed, port taken, directory not reachable, disk full.
func Start(ctx context.Context, options Options) (*Server, error) {
	bin, err := FindBinaries()
	if err != nil {
		return nil, err
	}
	who, err := serverAccount()
	if err != nil {
		return nil, err
	}
	if options.Dir, err = filepath.Abs(options.Dir); err != nil {
		return nil, fmt.Errorf("make %s absolute: %w", options.Dir, err)
	}
	if reachable, err := Reachable(options.Dir); err != nil {
		return nil, err
	} else if !reachable {
		return nil, fmt.Errorf("PostgreSQL runs as user %s, who cannot get to %s: choose a directory whose parents "+
			"others may enter", who.name, options.Dir)
	}
	if options.StartTimeout == 0 {
		options.StartTimeout = time.Minute
	}
	s := &Server{options: options, bin: bin, who: who}
	if err := s.initialise(ctx); err != nil {
		return nil, err
	}
	if err := s.stopOrphan(ctx); err != nil {
		return nil, err
	}
	if s.port, err = s.choosePort(); err != nil {
		return nil, err
	}
	if err := s.launch(); err != nil {
		return nil, err
	}
	if err := s.await(ctx); err != nil {
		return nil, errors.Join(err, s.Kill())
	}
	return s, nil
}

// URL is the connection URI of the server's own database, password included.
func (s *Server) URL() string {
	secret, _ := os.ReadFile(s.path("password")) // Start wrote it; a URL without it is refused by the server.
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, strings.TrimSpace(string(secret))),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: "/" + superuser, RawQuery: "sslmode=disable",
	}).String()
}

// PID of the postmaster.
func (s *Server) PID() int { return s.process.Pid }

// Exited is closed when the server has ended, by Stop, Kill or by itself.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Stop ends the server in order (fast shutdown: open transactions are rolled back); after 20 s, or when ctx ends, it
// is killed, which costs a recovery at the next start and no data.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.signal(syscall.SIGINT); err != nil {
		return err
	}
	select {
	case <-s.exited:
		return nil
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
	}
	return s.Kill()
}

// Kill ends the server as a crash would (immediate shutdown: nothing is flushed, recovery at the next start).
func (s *Server) Kill() error {
	if err := s.signal(syscall.SIGQUIT); err != nil {
		return err
	}
	select {
	case <-s.exited:
		return nil
	case <-time.After(10 * time.Second):
	}
	if err := s.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-s.exited
	return nil
}

// Restart runs a stopped or killed server again, on the same port.
func (s *Server) Restart(ctx context.Context) error {
	<-s.exited
	if err := s.launch(); err != nil {
		return err
	}
	return s.await(ctx)
}

func (s *Server) signal(sig syscall.Signal) error {
	if err := s.process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to PostgreSQL (pid %d): %w", sig, s.process.Pid, err)
	}
	return nil
}

func (s *Server) path(name string) string { return filepath.Join(s.options.Dir, name) }

func (s *Server) initialise(ctx context.Context) error {
	if err := s.who.own(s.options.Dir); err != nil {
		return err
	}
	if _, err := os.Stat(s.path("data/PG_VERSION")); err == nil {
		return nil
	}
	// A data directory without PG_VERSION is one whose initdb was interrupted: it holds nothing yet.
	if err := os.RemoveAll(s.path("data")); err != nil {
		return fmt.Errorf("clear a half-made data directory: %w", err)
	}
	if err := os.WriteFile(s.path("password"), []byte(rand.Text()), 0o600); err != nil {
		return fmt.Errorf("write the database password: %w", err)
	}
	if s.who.credential != nil {
		if err := os.Chown(s.path("password"), int(s.who.credential.Uid), int(s.who.credential.Gid)); err != nil {
			return fmt.Errorf("hand the password file to user %s: %w", s.who.name, err)
		}
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), "--pgdata", s.path("data"), "--username", superuser,
		"--pwfile", s.path("password"), "--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	cmd.Dir = s.options.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.who.credential}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initialise a PostgreSQL data directory in %s: %w: %s", s.options.Dir, err, lastLines(output))
	}
	return nil
}

// choosePort prefers, in this order: the port asked for, the port used before, any free one.
func (s *Server) choosePort() (int, error) {
	if s.options.Port != 0 {
		return s.options.Port, nil
	}
	if text, err := os.ReadFile(s.path("port")); err == nil {
		if port, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && portFree(port) {
			return port, nil
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // Listening on loopback does not block.
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return 0, fmt.Errorf("free port %d again: %w", port, err)
	}
	if err := os.WriteFile(s.path("port"), []byte(strconv.Itoa(port)), 0o600); err != nil {
		return 0, fmt.Errorf("remember port %d: %w", port, err)
	}
	return port, nil
}

func portFree(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // As above.
	return err == nil && listener.Close() == nil
}

func (s *Server) launch() error {
	args := []string{
		"-D", s.path("data"), "-p", strconv.Itoa(s.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
	}
	for name, value := range s.options.Settings {
		args = append(args, "-c", name+"="+value)
	}
	log, err := os.OpenFile(s.path("postgres.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("open PostgreSQL's log: %w", err)
	}
	// The server outlives every context: Stop and Kill end it.
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), args...) //nolint:noctx // See above.
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.options.Dir, log, log
	// A group of its own, so that Ctrl-C on a terminal reaches only us; and should we be killed, the kernel tells it
	// to crash-stop, which its recovery undoes.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.who.credential, Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	started, exited := make(chan error, 1), make(chan struct{})
	go func() {
		// The kernel sends the signal when the thread that forked ends, so that thread stays with the server.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(exited)
		err := errors.Join(cmd.Start(), log.Close())
		started <- err
		if err == nil {
			_ = cmd.Wait() // How it ended is in its log.
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	s.process, s.exited = cmd.Process, exited
	return nil
}

// await returns when the server answers a connection.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.StartTimeout)
	defer cancel()
	go func(exited <-chan struct{}) { // Whoever else has the port may never answer: our server's end ends the wait.
		select {
		case <-exited:
			cancel()
		case <-ctx.Done():
		}
	}(s.exited)
	for {
		conn, err := pgx.Connect(ctx, s.URL())
		if err == nil {
			return conn.Close(ctx)
		}
		if strings.Contains(err.Error(), "SQLSTATE 3D000") { // First start: the database is not there yet.
			return s.firstConnection(ctx)
		}
		select {
		case <-s.exited:
			return fmt.Errorf("PostgreSQL ended at once (port %d, directory %s): %s", s.port, s.options.Dir, s.logTail())
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL did not answer within %s: %w: %s", s.options.StartTimeout, err, s.logTail())
		case <-time.After(25 * time.Millisecond):
		}
	}
}

func (s *Server) firstConnection(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, strings.Replace(s.URL(), "/"+superuser+"?", "/postgres?", 1))
	if err != nil {
		return fmt.Errorf("connect to the new PostgreSQL: %w", err)
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+superuser)
	if err != nil {
		err = fmt.Errorf("create database %s: %w", superuser, err)
	}
	return errors.Join(err, conn.Close(ctx))
}

func (s *Server) logTail() string {
	log, err := os.ReadFile(s.path("postgres.log"))
	if err != nil {
		return "no log: " + err.Error()
	}
	return lastLines(log)
}

func lastLines(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " | ")
}

package testenv

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const brokerConfigVariable = "RELAYOPS_TESTENV_BROKER"

// Broker is a nats-server process with JetStream on file storage, started from the test's own binary.
type Broker struct {
	t       testing.TB
	dir     string
	port    int
	process *os.Process
	exited  chan struct{}
}

// NATS starts a broker that only this test has. Extra is appended to its configuration file, such as
// "max_payload: 4MB"; JetStream's storage is bounded by 1 GB of disk.
func NATS(t testing.TB, extra ...string) *Broker {
	t.Helper()
	b := &Broker{t: t, dir: t.TempDir(), port: freePort(t)}
	var config strings.Builder
	fmt.Fprintf(&config, "listen: \"127.0.0.1:%d\"\njetstream { store_dir: %q, max_file_store: 1GB }\n", b.port,
		filepath.Join(b.dir, "store"))
	for _, line := range extra {
		config.WriteString(line + "\n")
	}
	b.Configure(config.String())
	b.Start()
	t.Cleanup(b.Kill)
	return b
}

// Configure replaces the configuration file; it counts from the next Start.
func (b *Broker) Configure(config string) {
	b.t.Helper()
	if err := os.WriteFile(b.configPath(), []byte(config), 0o600); err != nil {
		b.t.Fatalf("write the broker's configuration: %v", err)
	}
}

// Config is the configuration file's text, for a test that changes a part of it.
func (b *Broker) Config() string {
	b.t.Helper()
	config, err := os.ReadFile(b.configPath())
	if err != nil {
		b.t.Fatalf("read the broker's configuration: %v", err)
	}
	return string(config)
}

func (b *Broker) configPath() string { return filepath.Join(b.dir, "nats.conf") }

// URL of the broker, the same after a restart.
func (b *Broker) URL() string { return fmt.Sprintf("nats://127.0.0.1:%d", b.port) }

// StoreDir is where JetStream keeps its files.
func (b *Broker) StoreDir() string { return filepath.Join(b.dir, "store") }

// Start runs the broker; it returns when it listens.
func (b *Broker) Start() {
	b.t.Helper()
	cmd := exec.Command(os.Args[0]) //nolint:noctx // Kill and Stop end it.
	cmd.Env = append(os.Environ(), brokerConfigVariable+"="+b.configPath())
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started, exited := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread() // Pdeathsig follows the thread that forked.
		defer runtime.UnlockOSThread()
		defer close(exited)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		b.t.Fatalf("start the broker: %v", err)
	}
	b.process, b.exited = cmd.Process, exited
	deadline := time.Now().Add(20 * time.Second)
	for {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port))
		conn, err := net.DialTimeout("tcp", address, time.Second) //nolint:noctx // Bounded.
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-exited:
			b.t.Fatal("the broker ended at once")
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the broker does not listen: %v", err)
		}
	}
}

// Stop ends the broker in order, and waits for its end.
func (b *Broker) Stop() { b.end(syscall.SIGTERM) }

// Kill ends it with SIGKILL.
func (b *Broker) Kill() { b.end(syscall.SIGKILL) }

// Pause and Resume stop and continue the process (SIGSTOP, SIGCONT): connections stay, answers stop.
func (b *Broker) Pause() { _ = b.process.Signal(syscall.SIGSTOP) }

// Resume continues a paused broker.
func (b *Broker) Resume() { _ = b.process.Signal(syscall.SIGCONT) }

func (b *Broker) end(sig syscall.Signal) {
	_ = b.process.Signal(sig)
	select {
	case <-b.exited:
	case <-time.After(20 * time.Second):
		_ = b.process.Kill()
		<-b.exited
	}
}

// Connect is a client connection, closed at the test's end.
func (b *Broker) Connect(options ...nats.Option) *nats.Conn {
	b.t.Helper()
	options = append([]nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(50 * time.Millisecond)}, options...)
	conn, err := nats.Connect(b.URL(), options...)
	if err != nil {
		b.t.Fatalf("connect to the broker: %v", err)
	}
	b.t.Cleanup(conn.Close)
	return conn
}

// serveBroker is the broker process.
func serveBroker(config string) {
	options, err := server.ProcessConfigFile(config)
	if err == nil {
		options.NoLog, options.NoSigs = true, true
		var broker *server.Server
		if broker, err = server.NewServer(options); err == nil {
			stop := make(chan os.Signal, 1)
			signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
			broker.Start()
			<-stop
			broker.Shutdown()
			broker.WaitForShutdown()
			os.Exit(0)
		}
	}
	fmt.Fprintln(os.Stderr, "broker:", err)
	os.Exit(1)
}

func freePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // Listening on loopback does not block.
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

package rig

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// brokerVariable makes a child of this program a broker; its value is the broker's configuration file.
const brokerVariable = "RELAYOPS_BENCH_BROKER"

// Broker is a nats-server process with JetStream on file storage.
type Broker struct {
	*Process
	URL string
}

// startBroker runs a nats-server with its defaults; syncAlways makes it sync to disk before each acknowledgement.
func startBroker(ctx context.Context, dir string, syncAlways bool) (*Broker, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "nats.conf")
	interval := ""
	if syncAlways {
		interval = ", sync_interval: always"
	}
	text := fmt.Sprintf("listen: \"127.0.0.1:%d\"\njetstream { store_dir: %q, max_file_store: 64GB%s }\n",
		port, filepath.Join(dir, "nats"), interval)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("configure the broker: %w", err)
	}
	cmd, err := ownProgram(brokerVariable, config)
	if err != nil {
		return nil, err
	}
	process, err := startProcess(dir, "broker", cmd)
	if err != nil {
		return nil, err
	}
	broker := &Broker{Process: process, URL: "nats://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return broker, process.Await(ctx, "the broker to listen", 20*time.Millisecond, func() (bool, error) {
		conn, err := nats.Connect(broker.URL)
		if err != nil {
			return false, nil //nolint:nilerr // Not yet: Await bounds how long.
		}
		conn.Close()
		return true, nil
	})
}

// ServeBroker runs this process as the broker if it was started as one, and reports whether it was.
func ServeBroker() (wasBroker bool, err error) {
	config := os.Getenv(brokerVariable)
	if config == "" {
		return false, nil
	}
	options, err := server.ProcessConfigFile(config)
	if err != nil {
		return true, fmt.Errorf("read the broker's configuration: %w", err)
	}
	options.NoLog, options.NoSigs = true, true
	broker, err := server.NewServer(options)
	if err != nil {
		return true, fmt.Errorf("make the broker: %w", err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	broker.Start()
	<-stop
	broker.Shutdown()
	broker.WaitForShutdown()
	return true, nil
}

// ownProgram is this program again, told its role by an environment variable.
func ownProgram(variable, value string) (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(path) //nolint:noctx // Process.Stop ends it; the path is our own.
	cmd.Env = append(os.Environ(), variable+"="+value)
	return cmd, nil
}

func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return 0, fmt.Errorf("free port %d again: %w", port, err)
	}
	return port, nil
}

package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for something that has to happen. It is generous: a loaded machine is no fault.
const patience = 60 * time.Second

// daemon is a relay or a worker process in a process group of its own.
type daemon struct {
	t       *testing.T
	name    string
	address string
	logPath string
	process *os.Process
	exited  chan struct{}
	// state is how the process ended; it may be read after exited is closed.
	state *os.ProcessState
	// killed is set when the test killed it, so that no kill of the test passes for a crash.
	killed bool
}

// startDaemon runs a program with a specification and, unless crashAt is empty, a place to crash at.
func startDaemon(t *testing.T, program, name, address string, spec any, crashAt string) *daemon {
	t.Helper()
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, name: name, address: address, exited: make(chan struct{})}
	own := t.TempDir()
	d.logPath = filepath.Join(own, name+".log")
	specPath := filepath.Join(own, name+".json")
	text, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		t.Fatalf("write the specification of %s: %v", name, err)
	}
	if err := os.WriteFile(specPath, text, 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(d.logPath)
	if err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command(filepath.Join(dir, program), specArguments(specPath)...)
	cmd.Env = append(specEnvironment(specPath), "HOME="+own, "PATH="+os.Getenv("PATH"))
	if crashAt != "" {
		cmd.Env = append(cmd.Env, "RELAYOPS_CRASH_AT="+crashAt)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Pdeathsig follows the thread that forked.
		defer runtime.UnlockOSThread()
		defer close(d.exited)
		err := cmd.Start()
		_ = log.Close() // The process has its own descriptor.
		started <- err
		if err == nil {
			_ = cmd.Wait() // How it ended is in its state.
			d.state = cmd.ProcessState
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	d.process = cmd.Process
	t.Cleanup(d.finish)
	return d
}

// finish kills what still runs and judges the log.
func (d *daemon) finish() {
	d.kill()
	text, err := os.ReadFile(d.logPath)
	if err != nil {
		d.t.Errorf("read the log of %s: %v", d.name, err)
		return
	}
	for _, trouble := range []string{"DATA RACE", "panic: ", "fatal error: ", confidential} {
		if strings.Contains(string(text), trouble) {
			d.t.Errorf("the log of %s holds %q", d.name, trouble)
		}
	}
	if d.t.Failed() {
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		d.t.Logf("log of %s (last lines):\n%s", d.name, strings.Join(lines[max(0, len(lines)-60):], "\n"))
	}
}

// kill ends the process with SIGKILL, thaws it if it was frozen, and waits for its end.
func (d *daemon) kill() {
	select {
	case <-d.exited:
		return
	default:
	}
	d.killed = true
	_ = d.process.Kill() // It may have ended just now.
	<-d.exited
}

func (d *daemon) signal(sig syscall.Signal) {
	d.t.Helper()
	if err := d.process.Signal(sig); err != nil {
		d.t.Fatalf("send %s to %s: %v", sig, d.name, err)
	}
}

// terminate sends SIGTERM; freeze and thaw stop the process and continue it, its connections open.
func (d *daemon) terminate() { d.t.Helper(); d.signal(syscall.SIGTERM) }
func (d *daemon) freeze()    { d.t.Helper(); d.signal(syscall.SIGSTOP) }
func (d *daemon) thaw()      { d.t.Helper(); d.signal(syscall.SIGCONT) }

// awaitExit waits for the process's end.
func (d *daemon) awaitExit(within time.Duration) {
	d.t.Helper()
	select {
	case <-d.exited:
	case <-time.After(within):
		d.t.Fatalf("%s still runs after %s", d.name, within)
	}
}

// awaitCrash waits until the process has killed itself at its crash point.
func (d *daemon) awaitCrash() {
	d.t.Helper()
	d.awaitExit(patience)
	status, ok := d.state.Sys().(syscall.WaitStatus)
	if !ok || d.killed || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		d.t.Fatalf("%s did not crash by SIGKILL: %s", d.name, d.state)
	}
}

// awaitCleanExit waits for status 0.
func (d *daemon) awaitCleanExit(within time.Duration) {
	d.t.Helper()
	d.awaitExit(within)
	if !d.state.Success() {
		d.t.Fatalf("%s ended with %s, not with status 0", d.name, d.state)
	}
}

func (d *daemon) running() bool {
	select {
	case <-d.exited:
		return false
	default:
		return true
	}
}

// get asks the daemon's endpoint. An endpoint that does not answer is an error.
func (d *daemon) get(path string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.address+path, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, strings.TrimSpace(string(text)), err
}

// metric is the sum of a metric of the daemon's over all its labels.
func (d *daemon) metric(name string) (sum float64) {
	d.t.Helper()
	status, body, err := d.get("/metrics")
	if err != nil || status != http.StatusOK {
		d.t.Fatalf("%s: /metrics: %d: %v", d.name, status, err)
	}
	found := false
	for line := range strings.Lines(body) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), name)
		if !ok || !strings.HasPrefix(rest, "{") && !strings.HasPrefix(rest, " ") {
			continue
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndex(rest, " ")+1:], 64)
		if err != nil {
			d.t.Fatalf("%s: /metrics: %s: %v", d.name, line, err)
		}
		found, sum = true, sum+value
	}
	if !found {
		d.t.Fatalf("%s: /metrics has no %s", d.name, name)
	}
	return sum
}

// awaitMetric waits until the metric has risen above a value.
func (d *daemon) awaitMetric(name string, above float64) {
	d.t.Helper()
	eventually(d.t, func() error {
		if value := d.metric(name); value <= above {
			return fmt.Errorf("%s: %s is %v, wanted more than %v", d.name, name, value, above)
		}
		return nil
	})
}

// awaitReady and awaitNotReady wait for /readyz to say so. The latter returns the reason that it gave.
func (d *daemon) awaitReady() {
	d.t.Helper()
	d.awaitReadiness(http.StatusOK)
}

func (d *daemon) awaitNotReady() (reason string) {
	d.t.Helper()
	return d.awaitReadiness(http.StatusServiceUnavailable)
}

func (d *daemon) awaitReadiness(wanted int) string {
	d.t.Helper()
	var answer string
	eventually(d.t, func() error {
		if !d.running() {
			d.t.Fatalf("%s ended: %s", d.name, d.state)
		}
		status, body, err := d.get("/readyz")
		if err != nil {
			return fmt.Errorf("%s: /readyz: %w", d.name, err)
		}
		if answer = body; status != wanted {
			return fmt.Errorf("%s: /readyz: %d %s, wanted %d", d.name, status, body, wanted)
		}
		return nil
	})
	return answer
}

// eventually tries until check returns nil; when patience is used up, its last error fails the test.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %v", patience, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// freeAddress is a loopback address that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// await waits for a channel to be closed.
func await(t *testing.T, event <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(patience):
		t.Fatalf("after %s: no %s", patience, what)
	}
}

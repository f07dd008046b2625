package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// stopTimeout is how long a process may take to stop in order: relayops dev finishes or hands back what is in hand.
const stopTimeout = 40 * time.Second

// process is one running part of the demo.
type process struct {
	name    string
	cmd     *exec.Cmd
	logPath string
	exited  chan struct{} // closed when it has ended; err is set then
	err     error
}

// program is the path of one of the programs that make demo built.
func (d *demo) program(name string) string {
	if name == "relayops" {
		return filepath.Join(filepath.Dir(filepath.Clean(d.binDir)), name)
	}
	return filepath.Join(d.binDir, name)
}

// start runs a program. Its output goes to <name>.log in the data directory.
func (d *demo) start(name string, env []string, args ...string) (*process, error) {
	p := &process{name: name, logPath: filepath.Join(d.dataDir, name+".log"), exited: make(chan struct{})}
	log, err := os.Create(p.logPath)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", name, err)
	}
	// Not tied to a context: the demo stops its parts in order, and in its own time.
	p.cmd = exec.Command(d.program(name), args...) //nolint:noctx // See above.
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(os.Environ(), env...)
	// A group of its own: Ctrl-C reaches the driver alone. Should the driver be killed, the part is told to stop.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started := make(chan error, 1)
	go func() {
		// The kernel watches the thread that forked, so that thread stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = log.Close() }()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// await polls until done reports true, the process ends, or the time is over.
func (p *process) await(ctx context.Context, timeout time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-p.exited:
			return p.failure("ended at once")
		case <-ctx.Done():
			return p.failure("is not ready")
		case <-ticker.C:
		}
	}
	return nil
}

// saysListening reports whether the process said so. Asking its port could reach another program that has it.
func (p *process) saysListening() bool {
	text, err := os.ReadFile(p.logPath)
	return err == nil && bytes.Contains(text, []byte("listening at"))
}

// failure is an error with the end of the process's log.
func (p *process) failure(what string) error {
	text, err := os.ReadFile(p.logPath)
	if err != nil {
		return fmt.Errorf("%s %s: %w", p.name, what, err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Errorf("%s %s:\n%s", p.name, what, strings.Join(lines[max(0, len(lines)-12):], "\n"))
}

// stop ends the process in order, and after a while for good. It is safe on a nil process and on one that has ended.
func (p *process) stop() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // It may have ended.
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// output runs a program to its end and returns what it printed.
func (d *demo) output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, d.program(name), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

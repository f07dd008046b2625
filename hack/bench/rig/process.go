package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Process is a running child of the benchmark.
type Process struct {
	Name    string
	process *os.Process
	exited  chan struct{}
	log     string
}

// startProcess runs a command with its output in a file of dir. The child dies with the benchmark.
func startProcess(dir, name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{Name: name, exited: make(chan struct{}), log: filepath.Join(dir, name+".log")}
	output, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Pdeathsig follows the thread that forked.
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		err := errors.Join(cmd.Start(), output.Close())
		started <- err
		if err == nil {
			_ = cmd.Wait() // How it ended is in its log.
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.process = cmd.Process
	return p, nil
}

// PID of the process.
func (p *Process) PID() int { return p.process.Pid }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Stop sends SIGTERM, waits, and sends SIGKILL after 15 s.
func (p *Process) Stop() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(15 * time.Second):
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.exited
	return fmt.Errorf("%s did not end within 15 s of SIGTERM and was killed: %s", p.Name, p.LogTail())
}

func (p *Process) signal(sig syscall.Signal) error {
	if err := p.process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s (pid %d): %w", sig, p.Name, p.process.Pid, err)
	}
	return nil
}

// LogTail is the end of what the process printed.
func (p *Process) LogTail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return "no log: " + err.Error()
	}
	const enough = 2000
	text = bytes.TrimSpace(text)
	return string(text[max(0, len(text)-enough):])
}

// Await polls until done says so; the end of a process, or of ctx, is an error with the process's last words.
func (p *Process) Await(ctx context.Context, what string, every time.Duration, done func() (bool, error)) error {
	for {
		ok, err := done()
		if err != nil {
			return fmt.Errorf("%s, wait for %s: %w", p.Name, what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("%s ended while we waited for %s: %s", p.Name, what, p.LogTail())
		case <-ctx.Done():
			return fmt.Errorf("%s, wait for %s: %w: %s", p.Name, what, context.Cause(ctx), p.LogTail())
		case <-time.After(every):
		}
	}
}

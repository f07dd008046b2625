package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/relayops/relayops/internal/runspec"
)

// Build says which build of a program to run.
type Build int

// This checkout's build, and that of Options.Baseline.
const (
	Current Build = iota
	Baseline
)

// StartRelay runs the relay program with a specification, and returns when it is ready. The address of its endpoint is
// chosen here.
func (r *Rig) StartRelay(ctx context.Context, build Build, spec runspec.Relay) (*Process, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	spec.Server.Address = address
	return r.startDaemon(ctx, build, "relay", spec, address)
}

// StartWorker runs the worker program likewise.
func (r *Rig) StartWorker(ctx context.Context, build Build, spec runspec.Worker) (*Process, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	spec.Server.Address = address
	return r.startDaemon(ctx, build, "worker", spec, address)
}

func (r *Rig) startDaemon(ctx context.Context, build Build, program string, spec any, address string,
) (*Process, error) {
	document, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the specification of %s: %w", program, err)
	}
	path := filepath.Join(r.Dir, program+".json")
	if err := os.WriteFile(path, document, 0o600); err != nil {
		return nil, fmt.Errorf("write the specification of %s: %w", program, err)
	}
	cmd, err := r.command(build, program, path)
	if err != nil {
		return nil, err
	}
	process, err := startProcess(r.Dir, program, cmd)
	if err != nil {
		return nil, err
	}
	ready, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err = process.Await(ready, "its readiness", 10*time.Millisecond, func() (bool, error) {
		return isReady(ready, address), nil
	})
	if err != nil {
		return nil, errors.Join(err, process.Stop())
	}
	return process, nil
}

func (r *Rig) command(build Build, program, spec string) (*exec.Cmd, error) {
	if r.options.ProfileDir == "" || build == Baseline {
		checkout := ""
		if build == Baseline {
			checkout = r.options.Baseline
		}
		binary := filepath.Join(r.binaries(checkout), program)
		return exec.Command(binary, "--spec", spec), nil //nolint:noctx // Process.Stop ends it; it is built here.
	}
	p := profiled{Program: program, Spec: spec}
	p.CPU, p.Heap = r.profileFiles(program)
	document, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write what to profile: %w", err)
	}
	return ownProgram(profileVariable, string(document))
}

func isReady(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

func freeAddress(ctx context.Context) (string, error) {
	port, err := freePort(ctx)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
}

package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"syscall"

	"github.com/relayops/relayops/internal/daemon/relay"
	"github.com/relayops/relayops/internal/daemon/worker"
)

// profileVariable makes a child of this program a daemon that profiles itself; its value is a profiled as JSON.
const profileVariable = "RELAYOPS_BENCH_PROFILE"

// memoryLimit and gcPercent are what the programs of cmd/ set.
const (
	memoryLimit = 48 << 20
	gcPercent   = 200
)

type profiled struct {
	Program string `json:"program"`
	Spec    string `json:"spec"`
	// CPU and Heap are the profiles' files.
	CPU  string `json:"cpu"`
	Heap string `json:"heap"`
}

// RunProfiled runs this process as a profiled daemon if it was started as one, and reports whether it was.
func RunProfiled() (wasProfiled bool, err error) {
	document := os.Getenv(profileVariable)
	if document == "" {
		return false, nil
	}
	var p profiled
	if err := json.Unmarshal([]byte(document), &p); err != nil {
		return true, fmt.Errorf("read what to profile: %w", err)
	}
	debug.SetMemoryLimit(memoryLimit)
	debug.SetGCPercent(gcPercent)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cpu, err := os.Create(p.CPU)
	if err != nil {
		return true, fmt.Errorf("write a CPU profile: %w", err)
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return true, fmt.Errorf("profile the CPU: %w", err)
	}
	err = runDaemon(ctx, p)
	pprof.StopCPUProfile()
	return true, errors.Join(err, cpu.Close(), writeHeap(p.Heap))
}

func runDaemon(ctx context.Context, p profiled) error {
	switch p.Program {
	case "relay":
		spec, err := relay.FromFile(p.Spec)
		if err != nil {
			return err
		}
		return relay.Run(ctx, spec)
	case "worker":
		spec, err := worker.FromFile(p.Spec)
		if err != nil {
			return err
		}
		return worker.Run(ctx, spec)
	default:
		return fmt.Errorf("profile: found program %q, allowed: relay, worker", p.Program)
	}
}

// writeHeap writes what was allocated since the start, and what of it is in use.
func writeHeap(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write a heap profile: %w", err)
	}
	runtime.GC()
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}

// profileFiles are the next two files of a program in a directory.
func (r *Rig) profileFiles(program string) (cpu, heap string) {
	r.profiles++
	base := filepath.Join(r.options.ProfileDir, fmt.Sprintf("%s-%02d", program, r.profiles))
	return base + ".cpu.pprof", base + ".heap.pprof"
}

package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/relayops/relayops/hack/bench/limit"
)

// loopVariable makes a child of this program a limit loop; its value is the loop's specification as JSON.
const loopVariable = "RELAYOPS_BENCH_LOOP"

// StartLoop runs a hand-written loop as a process of its own. The specification's servers are filled in.
func (r *Rig) StartLoop(name string, spec limit.Spec) (*Process, error) {
	var err error
	if spec.DatabaseURL, err = r.DatabaseURL(RoleRelay); err != nil {
		return nil, err
	}
	spec.NATSURL = r.NATSURL()
	document, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("write the loop's specification: %w", err)
	}
	cmd, err := ownProgram(loopVariable, string(document))
	if err != nil {
		return nil, err
	}
	return startProcess(r.Dir, name, cmd)
}

// RunLoop runs this process as a limit loop if it was started as one, and reports whether it was.
func RunLoop() (wasLoop bool, err error) {
	document := os.Getenv(loopVariable)
	if document == "" {
		return false, nil
	}
	var spec limit.Spec
	if err := json.Unmarshal([]byte(document), &spec); err != nil {
		return true, fmt.Errorf("read the loop's specification: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return true, limit.Run(ctx, spec)
}

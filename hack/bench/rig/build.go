package rig

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

const module = "github.com/relayops/relayops"

// build compiles programs of cmd/: release builds, without the race detector and without crash points.
func (r *Rig) build(ctx context.Context, programs []string) error {
	if len(programs) == 0 {
		return nil
	}
	args := []string{"build", "-o", r.binaries() + string(filepath.Separator)}
	for _, program := range programs {
		args = append(args, module+"/cmd/"+program)
	}
	if output, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil { //nolint:gosec // Names are ours.
		return fmt.Errorf("build %v: %w: %s", programs, err, output)
	}
	return nil
}

func (r *Rig) binaries() string { return filepath.Join(r.Dir, "bin") }

package rig

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

const module = "github.com/relayops/relayops"

// build compiles programs of cmd/: release builds, without the race detector and without crash points. checkout is the
// directory of another checkout of this module, or empty for this one.
func (r *Rig) build(ctx context.Context, checkout string, programs []string) error {
	if len(programs) == 0 {
		return nil
	}
	args := []string{"build", "-o", r.binaries(checkout) + string(filepath.Separator)}
	for _, program := range programs {
		args = append(args, module+"/cmd/"+program)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = checkout
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %v: %w: %s", programs, err, output)
	}
	return nil
}

func (r *Rig) binaries(checkout string) string {
	if checkout != "" {
		return filepath.Join(r.Dir, "bin-baseline")
	}
	return filepath.Join(r.Dir, "bin")
}

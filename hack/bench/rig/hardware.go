package rig

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/relayops/relayops/hack/bench/figures"
)

// DescribeHardware fills in the processor, the memory and the kernel.
func DescribeHardware(machine *figures.Machine) error {
	cpu, err := fieldOf("/proc/cpuinfo", "model name")
	if err != nil {
		return err
	}
	machine.CPU = cpu
	memory, err := fieldOf("/proc/meminfo", "MemTotal")
	if err != nil {
		return err
	}
	kib, err := strconv.ParseInt(strings.TrimSuffix(memory, " kB"), 10, 64)
	if err != nil {
		return fmt.Errorf("memory of the machine: %w", err)
	}
	machine.MemoryMiB = kib >> 10
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return fmt.Errorf("kernel of the machine: %w", err)
	}
	machine.Kernel = strings.TrimSpace(string(kernel))
	return nil
}

// fieldOf is the first "name: value" of a file; not every processor has a model name.
func fieldOf(path, name string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("describe the machine: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if found, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(found) == name {
			return strings.TrimSpace(value), nil
		}
	}
	return "unknown", nil
}

package rig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU times in /proc: Linux reports 100 ticks a second to user space on every architecture.
const clockTick = 10 * time.Millisecond

// Memory is what a process has resident, in bytes.
type Memory struct{ Resident, Peak int64 }

// MemoryOf reads VmRSS and VmHWM of a process.
func MemoryOf(pid int) (Memory, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("memory of process %d: %w", pid, err)
	}
	return parseStatus(string(text))
}

func parseStatus(status string) (Memory, error) {
	var m Memory
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		var field *int64
		switch name {
		case "VmRSS":
			field = &m.Resident
		case "VmHWM":
			field = &m.Peak
		default:
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return Memory{}, fmt.Errorf("read %s of a process's status: %w", name, err)
		}
		*field = kib << 10
	}
	if m.Resident == 0 || m.Peak == 0 {
		return Memory{}, errors.New("a process's status without VmRSS or VmHWM: it has ended")
	}
	return m, nil
}

// CPUOf is the CPU time that a process used, of its user and kernel mode, without its children.
func CPUOf(pid int) (time.Duration, error) {
	stat, err := readStat(pid)
	return stat.own, err
}

// TreeCPU is the CPU time of a process and of all that descend from it, ended and awaited ones included.
func TreeCPU(root int) (time.Duration, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	stats := make(map[int]processStat, len(paths))
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if stat, err := readStat(pid); err == nil { // One that ended meanwhile is its parent's.
			stats[pid] = stat
		}
	}
	if _, lives := stats[root]; !lives {
		return 0, fmt.Errorf("CPU time of process %d: it has ended", root)
	}
	var total time.Duration
	for pid, stat := range stats {
		if descends(stats, pid, root) {
			total += stat.own + stat.awaited
		}
	}
	return total, nil
}

func descends(stats map[int]processStat, pid, root int) bool {
	for range len(stats) + 1 {
		if pid == root {
			return true
		}
		stat, known := stats[pid]
		if !known {
			return false
		}
		pid = stat.parent
	}
	return false
}

type processStat struct {
	parent       int
	own, awaited time.Duration
}

func readStat(pid int) (processStat, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processStat{}, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	return parseStat(text)
}

// parseStat reads proc(5)'s stat. The command, field 2, may hold spaces and parentheses.
func parseStat(text []byte) (processStat, error) {
	end := bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[end+1:]))
	if end < 0 || len(fields) < 15 {
		return processStat{}, fmt.Errorf("a process's stat of %d fields", len(fields))
	}
	var numbers [5]int64
	for i, field := range []int{1, 11, 12, 13, 14} { // ppid, utime, stime, cutime, cstime
		n, err := strconv.ParseInt(fields[field], 10, 64)
		if err != nil {
			return processStat{}, fmt.Errorf("field %d of a process's stat: %w", field+3, err)
		}
		numbers[i] = n
	}
	return processStat{
		parent:  int(numbers[0]),
		own:     time.Duration(numbers[1]+numbers[2]) * clockTick,
		awaited: time.Duration(numbers[3]+numbers[4]) * clockTick,
	}, nil
}

// machineBusy is the CPU time that all cores together spent on anything but idling.
func machineBusy() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("CPU time of the machine: %w", err)
	}
	return parseMachineStat(string(text))
}

func parseMachineStat(text string) (time.Duration, error) {
	first, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(first)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("CPU time of the machine: found %q", first)
	}
	var busy int64
	for _, field := range []int{1, 2, 3, 6, 7, 8} { // user, nice, system, irq, softirq, steal
		n, err := strconv.ParseInt(fields[field], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("CPU time of the machine, field %d: %w", field, err)
		}
		busy += n
	}
	return time.Duration(busy) * clockTick, nil
}

// Neighbours measures how much CPU others used while a benchmark ran: whatever the machine did and our processes did
// not. A run with busy neighbours says little.
type Neighbours struct {
	began         time.Time
	machine, ours time.Duration
}

// WatchNeighbours begins to measure.
func WatchNeighbours() (Neighbours, error) {
	n := Neighbours{began: time.Now()}
	var err error
	n.machine, n.ours, err = neighbourTimes()
	return n, err
}

// Cores is how many cores others kept busy on average since the beginning.
func (n Neighbours) Cores() (float64, error) {
	machine, ours, err := neighbourTimes()
	if err != nil {
		return 0, err
	}
	others := (machine - n.machine) - (ours - n.ours)
	return max(0, others.Seconds()/time.Since(n.began).Seconds()), nil
}

func neighbourTimes() (machine, ours time.Duration, err error) {
	machine, err = machineBusy()
	if err != nil {
		return 0, 0, err
	}
	ours, err = TreeCPU(os.Getpid())
	return machine, ours, err
}

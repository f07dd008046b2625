package rig

import (
	"testing"
	"time"
)

func TestStatOfACommandWithSpacesAndParentheses(t *testing.T) {
	text := "42 (a (b) c) S 7 1 1 0 -1 4194304 100 0 0 0 150 50 20 10 20 0 8 0 1000 1 1"
	got, err := parseStat([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := processStat{parent: 7, own: 2 * time.Second, awaited: 300 * time.Millisecond}
	if got != want {
		t.Errorf("found %+v, want %+v", got, want)
	}
	if _, err := parseStat([]byte("42 (a) S 7")); err == nil {
		t.Error("a short stat gave no error")
	}
}

func TestStatusOfARunningAndOfAnEndedProcess(t *testing.T) {
	got, err := parseStatus("Name:\trelay\nVmHWM:\t   20480 kB\nVmRSS:\t   10240 kB\nThreads:\t8\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := (Memory{Resident: 10 << 20, Peak: 20 << 20}); got != want {
		t.Errorf("found %+v, want %+v", got, want)
	}
	if _, err := parseStatus("Name:\trelay\nState:\tZ (zombie)\n"); err == nil {
		t.Error("a zombie's status gave no error")
	}
}

func TestMachineTimeLeavesIdlingOut(t *testing.T) {
	got, err := parseMachineStat("cpu  100 10 50 9000 800 1 2 3 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := 1660 * time.Millisecond; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

func TestDescentFollowsParents(t *testing.T) {
	stats := map[int]processStat{1: {parent: 0}, 10: {parent: 1}, 11: {parent: 10}, 12: {parent: 11}, 20: {parent: 1}}
	for pid, want := range map[int]bool{10: true, 11: true, 12: true, 20: false, 1: false, 99: false} {
		if got := descends(stats, pid, 10); got != want {
			t.Errorf("descends(%d, 10): found %v, want %v", pid, got, want)
		}
	}
}

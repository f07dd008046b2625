package filelock_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/relayops/relayops/internal/filelock"
)

// TestMain lets the test binary play the process that holds a lock and is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv("FILELOCK_HOLD"); path != "" {
		if _, err := filelock.Acquire(path); err != nil {
			os.Exit(3)
		}
		_, _ = os.Stdout.WriteString("held\n")
		select {}
	}
	os.Exit(m.Run())
}

func TestASecondHolderIsRefusedAndToldWhoHoldsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "lock")
	first, err := filelock.Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	var held *filelock.HeldError
	if _, err := filelock.Acquire(path); !errors.As(err, &held) {
		t.Fatalf("second Acquire = %v, want a HeldError", err)
	}
	if held.PID != os.Getpid() || held.Path != path {
		t.Errorf("HeldError = %+v, want pid %d and path %s", held, os.Getpid(), path)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := filelock.Acquire(path)
	if err != nil {
		t.Fatalf("Acquire after Release = %v", err)
	}
	_ = again.Release()
}

func TestAKilledProcessLeavesNoLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holder := exec.CommandContext(t.Context(), os.Args[0])
	holder.Env = append(os.Environ(), "FILELOCK_HOLD="+path)
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	var held *filelock.HeldError
	if _, err := filelock.Acquire(path); !errors.As(err, &held) || held.PID != holder.Process.Pid {
		t.Fatalf("Acquire while process %d holds it = %v", holder.Process.Pid, err)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	lock, err := filelock.Acquire(path)
	if err != nil {
		t.Fatalf("Acquire after the holder was killed = %v", err)
	}
	_ = lock.Release()
}

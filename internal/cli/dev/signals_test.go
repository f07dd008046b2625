package dev

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary play a process whose drain never ends.
func TestMain(m *testing.M) {
	if os.Getenv("DEV_TEST_DRAIN") == "" {
		os.Exit(m.Run())
	}
	ctx, stop := gracefulThenHard(context.Background())
	defer stop()
	_, _ = fmt.Fprintln(os.Stdout, "running")
	<-ctx.Done()
	_, _ = fmt.Fprintln(os.Stdout, "draining")
	time.Sleep(time.Minute)
}

func TestTheFirstSignalDrainsAndTheSecondEndsTheProcess(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(os.Environ(), "DEV_TEST_DRAIN=1")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for _, want := range []string{"running", "draining"} {
				if !lines.Scan() || lines.Text() != want {
					t.Fatalf("the process said %q, want %q", lines.Text(), want)
				}
				if err := cmd.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
			}
			err = cmd.Wait()
			if exit, isExit := errors.AsType[*exec.ExitError](err); !isExit || exit.ExitCode() != exitHard {
				t.Errorf("the process ended with %v, want exit status %d", err, exitHard)
			}
		})
	}
}

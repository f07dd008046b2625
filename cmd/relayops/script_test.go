package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/relayops/relayops/internal/devstate"
)

// awaitTimeout bounds each wait of a script: a private PostgreSQL starts meanwhile, on a busy machine.
const awaitTimeout = time.Minute

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"relayops": main})
}

func TestScripts(t *testing.T) {
	// PostgreSQL runs as another account when root runs the tests: it has to get to the scripts' directories.
	root, err := os.MkdirTemp("", "relayops-cli-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", WorkdirRoot: root, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("DATABASE_URL", "")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"await": await, "awaitdev": awaitDev,
		},
	})
}

// await REGEXP COMMAND ARGS... runs the command until its output matches; the last run's output is that of the script.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await REGEXP COMMAND ARGS...")
	}
	wanted := regexp.MustCompile("(?m)" + args[0])
	var output string
	poll(ts, func() bool {
		output = quietly(ts, args[1:])
		return wanted.MatchString(output)
	}, func() string { return "output of " + strings.Join(args[1:], " ") + ":\n" + output })
	ts.Check(ts.Exec(args[1], args[2:]...))
}

// quietly runs a command as the script would, without a trace in its log.
func quietly(ts *testscript.TestScript, args []string) (output string) {
	path := ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if found, err := exec.LookPath(filepath.Join(dir, args[0])); err == nil {
			path = found
			break
		}
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "DATABASE_URL=" + ts.Getenv("DATABASE_URL")}
	text, err := cmd.CombinedOutput()
	if err != nil {
		return string(text) + err.Error()
	}
	return string(text)
}

// awaitdev DIR waits until a living relayops dev has written its state into the data directory.
func awaitDev(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: awaitdev DIR")
	}
	var state devstate.State
	poll(ts, func() bool {
		var err error
		state, err = devstate.Read(ts.MkAbs(args[0]))
		return err == nil && !errors.Is(syscall.Kill(state.PID, 0), syscall.ESRCH)
	}, func() string { return "no living relayops dev on " + args[0] })
}

func poll(ts *testscript.TestScript, done func() bool, problem func() string) {
	for deadline := time.Now().Add(awaitTimeout); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("not within %s: %s", awaitTimeout, problem())
		}
	}
}

package database_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/relayops/relayops/internal/cli/database"
	"github.com/relayops/relayops/internal/devstate"
)

func TestTheFlagComesBeforeTheEnvironmentBeforeTheState(t *testing.T) {
	dir := t.TempDir()
	if err := devstate.Write(dir, devstate.State{PID: 1, DatabaseURL: "postgres://state"}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, flag, environment, want string
	}{
		{"flag", "postgres://flag", "postgres://environment", "postgres://flag"},
		{"environment", "", "postgres://environment", "postgres://environment"},
		{"state", "", "", "postgres://state"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(database.EnvironmentVariable, test.environment)
			source, err := flags(t, "--data-dir", dir, "--database-url", test.flag).Find()
			if err != nil || source.URL != test.want {
				t.Errorf("Find = %q, %v, want %q", source.URL, err, test.want)
			}
		})
	}
}

func TestNoDatabaseNamesAllThreeWays(t *testing.T) {
	t.Setenv(database.EnvironmentVariable, "")
	dir := t.TempDir()
	_, err := flags(t, "--data-dir", dir).Find()
	for _, part := range []string{"--database-url", "DATABASE_URL", devstate.Path(dir)} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v lacks %q", err, part)
		}
	}
}

func TestAnEndedDevIsNamed(t *testing.T) {
	t.Setenv(database.EnvironmentVariable, "")
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// Port 1 of loopback: nothing listens there.
	state := devstate.State{PID: ended.Process.Pid, DatabaseURL: "postgres://a@127.0.0.1:1/a"}
	if err := devstate.Write(dir, state); err != nil {
		t.Fatal(err)
	}
	_, _, err := flags(t, "--data-dir", dir).Connect(t.Context())
	if err == nil || !strings.Contains(err.Error(), "start it again") {
		t.Errorf("Connect = %v, want the advice to start relayops dev again", err)
	}
	state.PID = os.Getpid()
	if err := devstate.Write(dir, state); err != nil {
		t.Fatal(err)
	}
	_, _, err = flags(t, "--data-dir", dir).Connect(t.Context())
	if err == nil || strings.Contains(err.Error(), "start it again") {
		t.Errorf("Connect with a living relayops dev = %v, want other advice", err)
	}
}

func flags(t *testing.T, args ...string) *database.Flags {
	t.Helper()
	cmd := &cobra.Command{Use: "test"}
	f := database.Add(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return f
}

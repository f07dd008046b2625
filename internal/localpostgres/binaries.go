package localpostgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// ErrNotInstalled is wrapped when no PostgreSQL server was found on the machine.
var ErrNotInstalled = errors.New("no PostgreSQL server found")

// MinVersion is the oldest major version of PostgreSQL that RelayOps supports.
const MinVersion = 13

// FindBinaries returns the directory that holds initdb and postgres: that of RELAYOPS_PG_BIN, of the PATH, or the
// newest below /usr/lib/postgresql (Debian's place). Its error wraps [ErrNotInstalled] and says what to install.
func FindBinaries() (string, error) {
	if dir := os.Getenv("RELAYOPS_PG_BIN"); dir != "" {
		if hasServer(dir) {
			return dir, nil
		}
		return "", fmt.Errorf("RELAYOPS_PG_BIN: found %q, allowed: a directory with initdb and postgres: %w", dir,
			ErrNotInstalled)
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil && hasServer(filepath.Dir(target)) {
			return filepath.Dir(target), nil
		}
	}
	installed, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", fmt.Errorf("look for PostgreSQL: %w", err)
	}
	installed = slices.DeleteFunc(installed, func(dir string) bool { return majorOf(dir) < MinVersion || !hasServer(dir) })
	if len(installed) == 0 {
		return "", fmt.Errorf("%w (version %d or later): install it (Debian, Ubuntu: apt-get install postgresql), "+
			"or set DATABASE_URL to a server, or RELAYOPS_PG_BIN to its bin directory", ErrNotInstalled, MinVersion)
	}
	return slices.MaxFunc(installed, func(a, b string) int { return majorOf(a) - majorOf(b) }), nil
}

func hasServer(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(dir, name)) //nolint:gosec // The user says where the programs are.
		if err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

func majorOf(bin string) int {
	major, err := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	if err != nil {
		return 0
	}
	return major
}

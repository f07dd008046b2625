package localpostgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopOrphan ends a server that a killed owner left running on this data directory. It is recognised by its pid file
// and its command line, never by name alone.
func (s *Server) stopOrphan(ctx context.Context) error {
	content, err := os.ReadFile(s.path("data/postmaster.pid"))
	if err != nil {
		return nil //nolint:nilerr // No pid file: nothing runs here.
	}
	first, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 || !s.isOurServer(pid) {
		return nil //nolint:nilerr // A stale file; PostgreSQL itself clears it.
	}
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop the PostgreSQL (pid %d) that an earlier run left on %s: %w", pid, s.options.Dir, err)
	}
	for range 400 {
		if !s.isOurServer(pid) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("the PostgreSQL (pid %d) that an earlier run left on %s does not stop: end it by hand", pid,
		s.options.Dir)
}

// isOurServer reports whether pid is a postgres with our data directory on its command line.
func (s *Server) isOurServer(pid int) bool {
	cmdline, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return false
	}
	args := bytes.Split(cmdline, []byte{0})
	return len(args) > 2 && filepath.Base(string(args[0])) == "postgres" &&
		bytes.Contains(cmdline, append([]byte(s.path("data")), 0))
}

//go:build crashpoints

package crashpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

var (
	target, pass = parse(os.Getenv("RELAYOPS_CRASH_AT"))
	passed       atomic.Int64
)

func parse(text string) (name string, pass int64) {
	name, count, found := strings.Cut(text, ":")
	if !found {
		return name, 1
	}
	pass, err := strconv.ParseInt(count, 10, 64)
	if err != nil || pass < 1 {
		panic("RELAYOPS_CRASH_AT: found " + text + ", allowed: NAME or NAME:N with N of 1 or more")
	}
	return name, pass
}

// Here kills this process with SIGKILL if name is the place that RELAYOPS_CRASH_AT names.
func Here(name string) {
	if name != target || passed.Add(1) != pass {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // The signal is on its way: nothing may happen after the place.
}

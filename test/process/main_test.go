// Package process_test kills, freezes, stops and cuts off the real relay and worker, the broker and the database, and
// compares what came of it with what the producer committed.
//
//	producer ──► PostgreSQL ──► relay ──► broker ──► worker ──► sink
//	   │                                                          │
//	   └── shop.orders, the truth ────► oracle ◄──── requests ────┘
//
// The oracle believes nobody's word: an order counts as committed if its row is in the shop's own table, as effected
// if the sink saw its request, as published if its message is in the stream.
package process_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/relayops/relayops/internal/testenv"
)

func TestMain(m *testing.M) {
	if databaseURL := os.Getenv(stalledProducerVariable); databaseURL != "" {
		stallInTransaction(databaseURL)
		return
	}
	// The tests wait most of the time: more of them run at once than there are processors.
	flag.Parse()
	parallel := flag.Lookup("test.parallel").Value
	if parallel.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := parallel.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	testenv.Main(m, removeBinaries)
}

var binariesDir string

// binaries is the directory of relay and worker, built with the race detector and the crash points on first use.
var binaries = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "relayops-process-")
	if err != nil {
		return "", fmt.Errorf("make a directory for the binaries: %w", err)
	}
	binariesDir = dir

	build := exec.Command("go", "build", "-race", "-tags", "crashpoints", "-o", dir, "./cmd/relay", "./cmd/worker")
	build.Dir = filepath.Join("..", "..")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build relay and worker: %w\n%s", err, output)
	}
	return dir, nil
})

func removeBinaries() error {
	if binariesDir == "" {
		return nil
	}
	return os.RemoveAll(binariesDir)
}

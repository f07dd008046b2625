// Bench measures the data path of RelayOps against loops written by hand, on servers of its own, and prints a line
// "name value unit" for each figure. Machines of one kind differ twofold from hour to hour: what counts are the ratios,
// taken between contenders that ran in turn within one run.
//
//	go run ./hack/bench                  everything, some minutes
//	go run ./hack/bench -quick           a look, below a minute
//	go run ./hack/bench -run relay-drain one of them
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/relayops/relayops/hack/bench/rig"
)

func main() {
	for _, role := range []func() (bool, error){rig.ServeBroker, rig.RunLoop, rig.RunProfiled} {
		if isChild, err := role(); isChild {
			exit(err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// errMissed is the end of a run with -check whose figures do not all meet their bars.
var errMissed = errors.New("not every bar was met")

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

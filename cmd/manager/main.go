// The manager is the operator: it makes the cluster what OutboxRelays and Pipelines say. See docs/install.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/relayops/relayops/internal/daemon/manager"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := manager.Command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run.
	}
}

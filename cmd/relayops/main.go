// Command relayops runs, checks and shows pipelines: see relayops --help.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/relayops/relayops/internal/cli"
)

func main() { os.Exit(run()) }

func run() (status int) {
	if err := cli.New().ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "relayops:", err)
		return 1
	}
	return 0
}

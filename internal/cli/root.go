// Package cli is the program relayops, which also works as kubectl relayops: a package for each verb, put together
// here.
package cli

import (
	"github.com/spf13/cobra"

	"github.com/relayops/relayops/internal/cli/deadletters"
	"github.com/relayops/relayops/internal/cli/dev"
	"github.com/relayops/relayops/internal/cli/emit"
	"github.com/relayops/relayops/internal/cli/executions"
	"github.com/relayops/relayops/internal/cli/lint"
	"github.com/relayops/relayops/internal/cli/migrate"
	"github.com/relayops/relayops/internal/cli/trace"
	"github.com/relayops/relayops/internal/cli/version"
)

// New makes the command.
func New() *cobra.Command {
	root := &cobra.Command{
		Use:   "relayops",
		Short: "Committed outbox events as tracked, retried, audited pipeline executions",
		Long: "RelayOps turns rows that an application commits to a PostgreSQL transactional outbox into tracked,\n" +
			"retried, audited pipeline executions on NATS JetStream.",
		Example: "  relayops dev -f config/samples     run manifests on this machine\n" +
			"  relayops trace EVENT_ID            what happened to an event?",
		Args: cobra.NoArgs,
		// The caller prints the error; a usage text above it would hide it.
		SilenceErrors: true,
		SilenceUsage:  true,
		// Completion is there, but no verb of its own in the help.
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.AddGroup(&cobra.Group{ID: "author", Title: "Write and run pipelines:"},
		&cobra.Group{ID: "operate", Title: "See what happened:"}, &cobra.Group{ID: "set-up", Title: "Set up:"})
	for group, commands := range map[string][]*cobra.Command{
		"author":  {dev.New(), lint.New(), emit.New()},
		"operate": {executions.New(), deadletters.New(), trace.New()},
		"set-up":  {migrate.New(), version.New()},
	} {
		for _, cmd := range commands {
			cmd.GroupID = group
			root.AddCommand(cmd)
		}
	}
	return root
}

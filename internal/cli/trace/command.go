// Package trace is the command relayops trace: the whole story of one event, in one screen.
package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/cli/database"
	"github.com/relayops/relayops/internal/cli/output"
	"github.com/relayops/relayops/internal/connect"
	"github.com/relayops/relayops/internal/runspec"
	read "github.com/relayops/relayops/internal/trace"
)

// New makes the command.
func New() *cobra.Command {
	var org string
	cmd := &cobra.Command{
		Use:   "trace EVENT_ID",
		Short: "Tell the whole story of one event",
		Long: "Tells the whole story of one event: when it was committed and published, each execution with its attempts,\n" +
			"steps, back-offs and tags, the events that it emitted, and its dead letter.",
		Example: "  relayops trace 0198c5a0-7c1e-7bb2-8f3a-2f6c1f0d9a11\n" +
			"  relayops trace 0198c5a0-7c1e-7bb2-8f3a-2f6c1f0d9a11 --org acme -o json | jq .executions",
		Args: cobra.ExactArgs(1),
	}
	db := database.Add(cmd)
	format := output.Add(cmd)
	cmd.Flags().StringVar(&org, "org", "", "organisation of the event; needed where several have an event of this id")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := uuid.Parse(args[0])
		if err != nil {
			return fmt.Errorf("EVENT_ID: found %q, allowed: a UUID", args[0])
		}
		return run(cmd.Context(), cmd.OutOrStdout(), db, id, org, *format)
	}
	return cmd
}

func run(ctx context.Context, w io.Writer, db *database.Flags, id uuid.UUID, org string, format output.Format) error {
	conn, source, err := db.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	story, err := read.Load(ctx, conn, id, org, Tables(source.Tables)...)
	if _, ambiguous := errors.AsType[*read.AmbiguousError](err); ambiguous {
		return fmt.Errorf("%w (pass --org)", err)
	}
	if err != nil {
		return connect.Explain(err)
	}
	if format == output.JSON {
		return output.WriteJSON(w, story)
	}
	return Render(w, story, time.Now())
}

// Tables are the distinct outbox tables of some relays, in the order of the relays' keys.
func Tables(byRelay map[string]runspec.Table) []outbox.Table {
	var tables []outbox.Table
	seen := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(byRelay)) {
		if table := byRelay[key]; !seen[table.String()] {
			seen[table.String()] = true
			tables = append(tables, table)
		}
	}
	return tables
}

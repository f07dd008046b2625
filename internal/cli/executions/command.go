// Package executions is the command relayops executions: the ledger as a table.
package executions

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/relayops/relayops/internal/cli/database"
	"github.com/relayops/relayops/internal/cli/duration"
	"github.com/relayops/relayops/internal/cli/output"
	"github.com/relayops/relayops/internal/cli/table"
	"github.com/relayops/relayops/internal/connect"
	read "github.com/relayops/relayops/internal/trace"
)

const defaultLimit = 50

// New makes the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "executions",
		Aliases: []string{"execution"},
		Short:   "List executions, the newest first",
		Args:    cobra.NoArgs,
	}
	configure(cmd)
	list := &cobra.Command{Use: "list", Short: cmd.Short, Args: cobra.NoArgs}
	configure(list)
	cmd.AddCommand(list)
	return cmd
}

// configure makes cmd the one that lists: relayops executions, and relayops executions list.
func configure(cmd *cobra.Command) {
	cmd.Example = "  relayops executions\n" +
		"  relayops executions --org acme --pipeline order-post --state RETRY\n" +
		"  relayops executions --state DEAD_LETTERED -o json | jq -r '.executions[].eventId'"
	db := database.Add(cmd)
	format := output.Add(cmd)
	var filter read.Filter
	cmd.Flags().StringVar(&filter.Org, "org", "", "only this organisation's")
	cmd.Flags().StringVar(&filter.Pipeline, "pipeline", "", "only this pipeline's: its name, namespace/name or key")
	cmd.Flags().StringVar(&filter.State, "state", "", "only those in this state: "+strings.Join(read.States, ", "))
	cmd.Flags().IntVar(&filter.Limit, "limit", defaultLimit, "at most so many")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter.State = strings.ToUpper(filter.State)
		if err := check(filter); err != nil {
			return err
		}
		conn, _, err := db.Connect(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(cmd.Context()) }()
		found, err := read.Executions(cmd.Context(), conn, filter)
		if err != nil {
			return connect.Explain(err)
		}
		if *format == output.JSON {
			return output.WriteJSON(cmd.OutOrStdout(), map[string]any{"executions": found})
		}
		return Render(cmd.OutOrStdout(), found, filter.Limit, time.Now())
	}
}

func check(filter read.Filter) error {
	if filter.State != "" && !slices.Contains(read.States, filter.State) {
		return fmt.Errorf("--state: found %q, allowed: %s", filter.State, strings.Join(read.States, ", "))
	}
	if filter.Limit < 1 {
		return fmt.Errorf("--limit: found %d, allowed: 1 or more", filter.Limit)
	}
	return nil
}

// Render writes executions as a table. limit is how many were asked for.
func Render(w io.Writer, executions []read.Execution, limit int, now time.Time) error {
	if len(executions) == 0 {
		_, err := fmt.Fprintln(w, "No executions.")
		return err
	}
	rows := make([][]string, len(executions))
	for i, e := range executions {
		rows[i] = []string{
			e.EventID.String(), e.OrgID, e.PipelineKey, e.State, fmt.Sprint(e.Attempt), duration.Age(now, e.CreatedAt),
		}
	}
	err := table.Write(w, []table.Column{
		{Title: "EVENT ID"}, {Title: "ORG", Shrink: table.End}, {Title: "PIPELINE", Shrink: table.Start},
		{Title: "STATE"}, {Title: "TRY"}, {Title: "AGE"},
	}, rows)
	if err == nil && len(executions) == limit {
		_, err = fmt.Fprintf(w, "\nThe newest %d; --limit shows more.\n", limit)
	}
	return err
}

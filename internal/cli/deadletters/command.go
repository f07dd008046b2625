// Package deadletters is the command relayops dead-letters: what failed for good, and why.
package deadletters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/relayops/relayops/internal/cli/database"
	"github.com/relayops/relayops/internal/cli/duration"
	"github.com/relayops/relayops/internal/cli/output"
	"github.com/relayops/relayops/internal/cli/table"
	clitrace "github.com/relayops/relayops/internal/cli/trace"
	"github.com/relayops/relayops/internal/connect"
	read "github.com/relayops/relayops/internal/trace"
)

const defaultLimit = 50

// New makes the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "dead-letters",
		Aliases: []string{"dead-letter", "deadletters"},
		Short:   "List dead letters, or show one",
		Args:    cobra.NoArgs,
	}
	configureList(cmd)
	list := &cobra.Command{Use: "list", Short: "List dead letters, the newest first", Args: cobra.NoArgs}
	configureList(list)
	cmd.AddCommand(list, newShow())
	return cmd
}

func configureList(cmd *cobra.Command) {
	cmd.Example = "  relayops dead-letters\n" +
		"  relayops dead-letters --org acme --code permanent_error\n" +
		"  relayops dead-letters show 0198c5a0-7c1e-7bb2-8f3a-2f6c1f0d9a11"
	db := database.Add(cmd)
	format := output.Add(cmd)
	var filter read.Filter
	cmd.Flags().StringVar(&filter.Org, "org", "", "only this organisation's")
	cmd.Flags().StringVar(&filter.Pipeline, "pipeline", "", "only this pipeline's: its name, namespace/name or key")
	cmd.Flags().StringVar(&filter.Code, "code", "", "only those with this code, such as max_attempts_exceeded")
	cmd.Flags().IntVar(&filter.Limit, "limit", defaultLimit, "at most so many")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if filter.Limit < 1 {
			return fmt.Errorf("--limit: found %d, allowed: 1 or more", filter.Limit)
		}
		conn, _, err := db.Connect(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(cmd.Context()) }()
		found, err := read.DeadLetters(cmd.Context(), conn, filter)
		if err != nil {
			return connect.Explain(err)
		}
		if *format == output.JSON {
			return output.WriteJSON(cmd.OutOrStdout(), map[string]any{"deadLetters": found})
		}
		return Render(cmd.OutOrStdout(), found, filter.Limit, time.Now())
	}
}

// Render writes dead letters as a table. limit is how many were asked for.
func Render(w io.Writer, letters []read.DeadLetter, limit int, now time.Time) error {
	if len(letters) == 0 {
		_, err := fmt.Fprintln(w, "No dead letters.")
		return err
	}
	rows := make([][]string, len(letters))
	for i, d := range letters {
		rows[i] = []string{d.ID.String(), d.OrgID, d.PipelineKey, d.Code, d.NodeID, duration.Age(now, d.CreatedAt)}
	}
	err := table.Write(w, []table.Column{
		{Title: "ID"}, {Title: "ORG", Shrink: table.End}, {Title: "PIPELINE", Shrink: table.Start},
		{Title: "CODE"}, {Title: "NODE", Shrink: table.End}, {Title: "AGE"},
	}, rows)
	if err == nil && len(letters) == limit {
		_, err = fmt.Fprintf(w, "\nThe newest %d; --limit shows more.\n", limit)
	}
	return err
}

func newShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show one dead letter, with the story of its event",
		Example: "  relayops dead-letters show 0198c5a0-7c1e-7bb2-8f3a-2f6c1f0d9a11",
		Args:    cobra.ExactArgs(1),
	}
	db := database.Add(cmd)
	format := output.Add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := uuid.Parse(args[0])
		if err != nil {
			return fmt.Errorf("ID: found %q, allowed: a UUID, as `relayops dead-letters` lists them", args[0])
		}
		conn, source, err := db.Connect(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(cmd.Context()) }()
		letter, story, err := load(cmd.Context(), conn, id, source)
		if err != nil {
			return connect.Explain(err)
		}
		if *format == output.JSON {
			return output.WriteJSON(cmd.OutOrStdout(), struct {
				DeadLetter read.DeadLetter `json:"deadLetter"`
				Story      *read.Story     `json:"story,omitempty"`
			}{letter, story})
		}
		return RenderOne(cmd.OutOrStdout(), letter, story, time.Now())
	}
	return cmd
}

func load(ctx context.Context, conn *pgx.Conn, id uuid.UUID, source database.Source) (
	read.DeadLetter, *read.Story, error,
) {
	letter, err := read.DeadLetterByID(ctx, conn, id)
	if err != nil {
		return read.DeadLetter{}, nil, err
	}
	if letter == nil {
		return read.DeadLetter{}, nil, fmt.Errorf("no dead letter has the id %s: `relayops dead-letters` lists them", id)
	}
	if letter.EventID == nil {
		return *letter, nil, nil
	}
	story, err := read.Load(ctx, conn, *letter.EventID, letter.OrgID, clitrace.Tables(source.Tables)...)
	if _, gone := errors.AsType[*read.NotFoundError](err); gone {
		return *letter, nil, nil
	}
	return *letter, &story, err
}

// RenderOne writes one dead letter and, where its event is known, the event's story.
func RenderOne(w io.Writer, d read.DeadLetter, story *read.Story, now time.Time) error {
	facts := []struct{ name, value string }{
		{"code", d.Code}, {"org", d.OrgID}, {"pipeline", d.PipelineKey}, {"node", d.NodeID},
		{"HTTP status", number(int64(d.HTTPStatus))}, {"attempt", number(int64(d.Attempt))}, {"stream", d.Stream},
		{"sequence", number(d.StreamSeq)}, {"since", d.CreatedAt.UTC().Format(time.RFC3339)},
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Dead letter %s\n", d.ID)
	for _, fact := range facts {
		if fact.value != "" {
			fmt.Fprintf(&text, "  %-12s %s\n", fact.name, fact.value)
		}
	}
	if _, err := io.WriteString(w, text.String()+"\n"); err != nil {
		return err
	}
	if story == nil {
		_, err := fmt.Fprintln(w, "Its event could not be decoded, or is not kept any more.")
		return err
	}
	return clitrace.Render(w, *story, now)
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

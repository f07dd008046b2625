// Package migrate is the command relayops migrate: it brings a database's schema up to this program's version, or
// shows how far it is.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/relayops/relayops/internal/cli/database"
	"github.com/relayops/relayops/internal/cli/output"
	"github.com/relayops/relayops/internal/cli/table"
	"github.com/relayops/relayops/internal/connect"
	"github.com/relayops/relayops/internal/schema"
)

// New makes the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring a database's schema up to date, or show how far it is",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(
		newVerb(&cobra.Command{
			Use:   "up",
			Short: "Apply the migrations that the database does not have",
			Long: "Applies the migrations that the database does not have, in order, each in a transaction of its own.\n" +
				"Any number of these may run at once: one migrates, the others wait.",
			Example: "  relayops migrate up --database-url postgres://owner@db.example.com/shop",
		}, up),
		newVerb(&cobra.Command{
			Use:     "status",
			Short:   "Show the migrations, and when the database got them",
			Example: "  relayops migrate status -o json",
		}, status))
	return cmd
}

type verb func(ctx context.Context, w io.Writer, conn *pgx.Conn, format output.Format) error

func newVerb(cmd *cobra.Command, run verb) *cobra.Command {
	cmd.Args = cobra.NoArgs
	db, format := database.Add(cmd), output.Add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		conn, _, err := db.Connect(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(cmd.Context()) }()
		return advise(run(cmd.Context(), cmd.OutOrStdout(), conn, *format))
	}
	return cmd
}

// advise adds what to do about a database's error; the schema's own errors say it already.
func advise(err error) error {
	if _, ok := errors.AsType[*schema.PrivilegeError](err); ok {
		return err
	}
	return connect.Explain(err)
}

func up(ctx context.Context, w io.Writer, conn *pgx.Conn, format output.Format) error {
	applied, err := schema.Migrate(ctx, conn)
	if format == output.JSON {
		if applied == nil {
			applied = []schema.Migration{}
		}
		return errors.Join(output.WriteJSON(w, applied), err)
	}
	for _, migration := range applied {
		if _, err := fmt.Fprintf(w, "applied %04d_%s\n", migration.Version, migration.Name); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "schema version %d: up to date\n", schema.Version())
	return err
}

func status(ctx context.Context, w io.Writer, conn *pgx.Conn, format output.Format) error {
	migrations, err := schema.Status(ctx, conn)
	if migrations == nil {
		return err
	}
	if format == output.JSON {
		return errors.Join(output.WriteJSON(w, migrations), err)
	}
	rows := make([][]string, len(migrations))
	for i, migration := range migrations {
		applied := "not applied: run relayops migrate up"
		if migration.AppliedAt != nil {
			applied = migration.AppliedAt.UTC().Format(time.RFC3339)
		}
		rows[i] = []string{fmt.Sprintf("%04d", migration.Version), migration.Name, applied}
	}
	columns := []table.Column{{Title: "VERSION"}, {Title: "NAME"}, {Title: "APPLIED"}}
	return errors.Join(table.Write(w, columns, rows), err)
}

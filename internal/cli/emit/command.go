// Package emit is the command relayops emit: it commits one event to the outbox, as an application would.
package emit

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/relayops/relayops/api/event"
	"github.com/relayops/relayops/api/outbox"
	"github.com/relayops/relayops/internal/cli/database"
	"github.com/relayops/relayops/internal/cli/output"
)

type flags struct {
	org, eventType, payload, id                            string
	aggregateType, aggregateID, correlationID, causationID string
	version                                                int32
	headers                                                []string
	relay                                                  string
}

// New makes the command.
func New() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "emit",
		Short: "Commit one event to the outbox, and wake the relay up",
		Long: "Commits one event to the outbox as an application would, wakes the relay up, and prints the event's id.\n" +
			"The same id again with the same payload changes nothing; with another payload it is refused.",
		Example: "  relayops emit --org acme --type OrderConfirmed --payload '{\"orderNumber\":\"A-1\"}'\n" +
			"  relayops emit --org acme --type OrderConfirmed --payload @order.json -o json\n" +
			"  jq .order dump.json | relayops emit --org acme --type OrderConfirmed --payload -",
		Args: cobra.NoArgs,
	}
	db, format := database.Add(cmd), output.Add(cmd)
	set := cmd.Flags()
	set.StringVar(&f.org, "org", "", "organisation that the event belongs to (required)")
	set.StringVar(&f.eventType, "type", "", "event type, such as OrderConfirmed (required)")
	set.StringVar(&f.payload, "payload", "", "JSON document, @FILE, or - for standard input (required)")
	set.StringVar(&f.id, "id", "", "event id, a UUID (default: a new one)")
	set.Int32Var(&f.version, "event-version", 1, "version of the payload's schema")
	set.StringVar(&f.aggregateType, "aggregate-type", "", "kind of business object, such as Order")
	set.StringVar(&f.aggregateID, "aggregate-id", "", "the business object's id")
	set.StringVar(&f.correlationID, "correlation-id", "", "id that joins the events of one business transaction")
	set.StringVar(&f.causationID, "causation-id", "", "id of the event that caused this one")
	set.StringArrayVar(&f.headers, "header", nil, "header of the event, key=value; may be given many times")
	set.StringVar(&f.relay, "relay", "", "key of the relay whose outbox is meant, where relayops dev runs several")
	for _, required := range []string{"org", "type", "payload"} {
		if err := cmd.MarkFlagRequired(required); err != nil {
			panic(fmt.Sprintf("emit: %v", err)) // A flag that was not defined above.
		}
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		envelope, err := f.envelope(cmd.InOrStdin())
		if err != nil {
			return err
		}
		conn, source, err := db.Connect(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(cmd.Context()) }()
		table, err := f.table(source.Tables)
		if err != nil {
			return err
		}
		if err := commit(cmd.Context(), conn, table, envelope); err != nil {
			return err
		}
		if err := outbox.Ping(cmd.Context(), conn); err != nil {
			// The event is committed, and the relay's poll finds it.
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "relayops:", err)
		}
		return show(cmd.OutOrStdout(), envelope, *format)
	}
	return cmd
}

func commit(ctx context.Context, conn *pgx.Conn, table outbox.Table, envelope event.Envelope) error {
	writer, err := outbox.NewWriter(outbox.WithTable(table))
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return writer.Write(ctx, tx, envelope) })
}

func show(w io.Writer, envelope event.Envelope, format output.Format) error {
	if format == output.JSON {
		return output.WriteJSON(w, envelope)
	}
	_, err := fmt.Fprintln(w, envelope.ID)
	return err
}

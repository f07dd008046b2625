package outbox

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/api/event"
)

// field is one field of the envelope and the column that it is written to.
type field struct {
	name, column string
	// text is the field's value as PostgreSQL reads it.
	text func(e *event.Envelope) string
	// needed reports whether the event has a value that is lost without the column.
	needed func(e *event.Envelope) bool
}

// fields are the columns that a writer fills, in the order of the parameters of statements.one.
var fields = []field{
	{"id", "event_id", func(e *event.Envelope) string { return e.ID.String() }, always},
	{"orgId", "org_id", func(e *event.Envelope) string { return e.OrgID }, always},
	{"eventType", "event_type", func(e *event.Envelope) string { return e.EventType }, always},
	{
		"eventVersion", "event_version", func(e *event.Envelope) string { return strconv.Itoa(int(e.EventVersion)) },
		func(e *event.Envelope) bool { return e.EventVersion != 1 },
	},
	textField("aggregateType", "aggregate_type", func(e *event.Envelope) string { return e.AggregateType }),
	textField("aggregateId", "aggregate_id", func(e *event.Envelope) string { return e.AggregateID }),
	textField("correlationId", "correlation_id", func(e *event.Envelope) string { return e.CorrelationID }),
	textField("causationId", "causation_id", func(e *event.Envelope) string { return e.CausationID }),
	{"payload", "payload", func(e *event.Envelope) string { return string(e.Payload) }, always},
	{"headers", "headers", headersText, func(e *event.Envelope) bool { return len(e.Headers) > 0 }},
	{"occurredAt", "occurred_at", func(e *event.Envelope) string { return timestamp(e.OccurredAt) }, always},
}

func always(*event.Envelope) bool { return true }

func textField(name, column string, text func(e *event.Envelope) string) field {
	return field{name, column, text, func(e *event.Envelope) bool { return text(e) != "" }}
}

// statements is the SQL for one table.
type statements struct {
	// columns are the table's own names, unquoted, by the standard name: those that a writer fills and the table has.
	columns map[string]string
	// one inserts one event, its fields being the parameters; empty for a mapped table.
	one string
	// many inserts the events that are not there; insist inserts them or fails; settle gives the position of each event
	// whose row has another payload (false) or is not there (true). Their parameters are arrays: metadata, payloads.
	many, insist, settle string
}

func (s *statements) has(standard string) bool {
	_, has := s.columns[standard]
	return has
}

// An event's metadata is a JSON object of columns. PostgreSQL turns it into a row of the table
// (jsonb_populate_record), by whatever types the table's columns have: a uuid, an enum, a timestamp that holds UTC. The
// payload stands beside it, because a JSON null in such an object would become a NULL.
func newStatements(table Table) statements {
	s := statements{columns: make(map[string]string, len(fields))}
	var names, values []string
	add := func(column, value string) {
		name, exists := table.ColumnName(column)
		if !exists {
			return
		}
		s.columns[column] = name
		quoted := pgx.Identifier{name}.Sanitize()
		names = append(names, quoted)
		if value == "" {
			value = "r." + quoted
		}
		values = append(values, value)
	}
	for _, field := range fields {
		if field.column == "payload" {
			add(field.column, "e.payload::jsonb")
		} else {
			add(field.column, "")
		}
	}
	filled := "e.meta::jsonb"
	differs := "o.payload_sha256 <> relayops.payload_sha256(e.payload::jsonb)"
	if table.Mapped() {
		filled = "d.defaults || e.meta::jsonb"
		for _, column := range []string{"status", "attempts", "available_at", "created_at", "operation_version"} {
			add(column, "")
		}
		payload := pgx.Identifier{"o", s.columns["payload"]}.Sanitize()
		differs = payload + "::jsonb::text IS DISTINCT FROM e.payload::jsonb::text"
	}
	from := "FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS e(meta, payload, n)\n" +
		s.defaults(table) +
		"CROSS JOIN LATERAL jsonb_populate_record(NULL::" + table.Identifier() + ", " + filled + ") AS r\n"
	s.insist = fmt.Sprintf("INSERT INTO %s (%s)\nSELECT %s\n%sORDER BY e.n",
		table.Identifier(), strings.Join(names, ", "), strings.Join(values, ", "), from)
	s.many = s.insist + "\nON CONFLICT DO NOTHING"
	id, org := pgx.Identifier{s.columns["event_id"]}.Sanitize(), pgx.Identifier{s.columns["org_id"]}.Sanitize()
	s.settle = fmt.Sprintf("SELECT e.n, o.%[1]s IS NULL\n%[2]s"+
		"LEFT JOIN %[3]s o ON o.%[4]s = r.%[4]s AND o.%[1]s = r.%[1]s\nWHERE o.%[1]s IS NULL OR %[5]s",
		id, from, table.Identifier(), org, differs)
	if !table.Mapped() {
		s.one = "INSERT INTO relayops.outbox_events (" + strings.Join(names, ", ") + ")\n" +
			"VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)\nON CONFLICT DO NOTHING"
	}
	return s
}

// defaults are the values that relayops.outbox_events has by default, and that a mapped table may have no default for.
// The time is the database's, written in UTC so that a column without time zone gets UTC whatever the session's is.
// A text that an event does not have is NULL, but empty where the column is a text that cannot be NULL: the catalogue
// says which are.
func (s *statements) defaults(table Table) string {
	if !table.Mapped() {
		return ""
	}
	var texts []string
	for _, column := range []string{"aggregate_type", "aggregate_id", "correlation_id", "causation_id"} {
		if name, exists := table.ColumnName(column); exists {
			texts = append(texts, quoteLiteral(name))
		}
	}
	empty := "'{}'::jsonb"
	if len(texts) > 0 {
		empty = "coalesce((SELECT jsonb_object_agg(a.attname::text, ''::text) FROM pg_catalog.pg_attribute a\n" +
			"  JOIN pg_catalog.pg_type t ON t.oid = a.atttypid\n" +
			"  WHERE a.attrelid = " + quoteLiteral(table.Identifier()) + "::regclass AND a.attnotnull\n" +
			"  AND t.typcategory = 'S' AND a.attname IN (" + strings.Join(texts, ", ") + ")), '{}')"
	}
	const now = `to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
	var pairs []string
	for _, column := range []struct{ standard, value string }{
		{"status", "'PENDING'"}, {"attempts", "0"}, {"available_at", now}, {"created_at", now}, {"operation_version", "1"},
	} {
		if name, exists := table.ColumnName(column.standard); exists {
			pairs = append(pairs, quoteLiteral(name)+", "+column.value)
		}
	}
	return "CROSS JOIN (SELECT " + empty + " || jsonb_build_object(" + strings.Join(pairs, ", ") + ") AS defaults) AS d\n"
}

// quoteLiteral is an SQL string literal that does not depend on standard_conforming_strings.
func quoteLiteral(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(text, `\`) {
		return " E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

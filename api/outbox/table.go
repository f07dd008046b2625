package outbox

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Table maps the outbox to a table. The zero value stands for relayops.outbox_events, which the migrations make.
type Table struct {
	// Schema and Name of an existing table. Name empty: relayops.outbox_events. Schema empty beside a Name: public.
	Schema string `json:"schema,omitempty"`
	Name   string `json:"name,omitempty"`
	// Columns gives the table's own name for a column of relayops.outbox_events, such as "event_id": "id" or
	// "org_id": "orgId", in its own case and without quotes. A column that is not listed has its standard name; a
	// column mapped to "" does not exist there, which is allowed for the optional ones (see [Columns]). The payload's
	// hash is never read from a mapped table: it is always computed.
	Columns map[string]string `json:"columns,omitempty"`
}

const (
	standardSchema = "relayops"
	standardName   = "outbox_events"
	// maxIdentifierBytes is PostgreSQL's NAMEDATALEN-1: what is longer would be cut without a word.
	maxIdentifierBytes = 63
)

// Mapped reports whether the outbox is an existing table of the application.
func (t Table) Mapped() bool { return t.Name != "" }

// Identifier is the table's name for use in SQL: schema and name, each quoted.
func (t Table) Identifier() string {
	schema, name := t.names()
	return pgx.Identifier{schema, name}.Sanitize()
}

// String is the table's name for people, unquoted.
func (t Table) String() string {
	schema, name := t.names()
	return schema + "." + name
}

// Names are the table's schema and name, unquoted, for a look-up in the catalogue.
func (t Table) Names() (schema, name string) { return t.names() }

func (t Table) names() (schema, name string) {
	switch {
	case !t.Mapped():
		return standardSchema, standardName
	case t.Schema == "":
		return "public", t.Name
	default:
		return t.Schema, t.Name
	}
}

// Column is the table's name for a standard column, quoted for use in SQL, and whether the table has it. A name that
// is no standard column is a programming error and panics.
func (t Table) Column(standard string) (quoted string, exists bool) {
	name, exists := t.ColumnName(standard)
	if !exists {
		return "", false
	}
	return pgx.Identifier{name}.Sanitize(), true
}

// ColumnName is [Table.Column] without the quotes.
func (t Table) ColumnName(standard string) (name string, exists bool) {
	if !isStandard(standard) {
		panic(fmt.Sprintf("outbox: %q is no column of the outbox", standard))
	}
	if name, isMapped := t.Columns[standard]; isMapped {
		return name, name != ""
	}
	return standard, !t.Mapped() || standard != "payload_sha256"
}

// Read is an SQL expression that reads a standard column of the table, or of its alias, in one form whatever type the
// table has, and that no row can make fail: one bad row must not stop the claim of the others. An optional column
// that the table does not have reads as its default.
//
//   - event_id, org_id, event_type, aggregate_type, aggregate_id, correlation_id, causation_id, status, last_error,
//     stream: text, empty for NULL
//   - payload: its JSON as text, empty for NULL; headers: a JSON document as text
//   - payload_sha256: bytea, the SHA-256 of that text
//   - event_version, attempts, operation_version: integer
//   - position, stream_seq: bigint, 0 for NULL
//   - occurred_at, created_at, available_at, published_at: bigint, microseconds since 1970 (UTC); NULL for NULL and
//     for what lies outside the years 1 to 9999, infinity among it
func (t Table) Read(alias, standard string) string {
	column, exists := t.Column(standard)
	if alias != "" {
		column = pgx.Identifier{alias}.Sanitize() + "." + column
	}
	switch standardColumn(standard).kind {
	case kindText:
		if !exists {
			return "''::text"
		}
		return "coalesce(" + column + "::text, '')"
	case kindPayload:
		return "coalesce(" + column + "::text, '')"
	case kindHash:
		if !exists {
			return "sha256(convert_to(" + t.Read(alias, "payload") + ", 'UTF8'))"
		}
		return column
	case kindHeaders:
		if !exists {
			return "'{}'::text"
		}
		return "coalesce(" + column + "::text, '{}')"
	case kindInteger:
		missing := "1"
		if standard == "attempts" {
			missing = "0"
		}
		if !exists {
			return missing + "::integer"
		}
		return "coalesce(" + column + ", " + missing + ")::integer"
	case kindBigint:
		if !exists {
			return "0::bigint"
		}
		return "coalesce(" + column + ", 0)::bigint"
	default: // kindTime
		if !exists {
			return "NULL::bigint"
		}
		// The epoch of a timestamp without time zone is counted as if it were UTC, which is what it has to hold.
		return "CASE WHEN " + column + " >= '0001-01-01 00:00:00+00' AND " + column + " < '10000-01-01 00:00:00+00' " +
			"THEN (extract(epoch FROM " + column + ") * 1000000)::bigint END"
	}
}

// Validate reports every mistake of the mapping itself, before a database is asked: an unknown standard column, a
// required column that is said not to exist, a name that PostgreSQL cannot hold, two columns of one name.
// Whether the table fits is internal/schema's to say.
func (t Table) Validate() error {
	var faults []error
	fault := func(field, found, allowed string) {
		faults = append(faults, fmt.Errorf("table.%s: found %s, allowed: %s", field, found, allowed))
	}
	if !t.Mapped() {
		if t.Schema != "" {
			fault("name", "nothing beside a schema", "the name of the outbox table")
		}
		if len(t.Columns) > 0 {
			fault("name", "nothing beside columns", "the name of the table that the columns belong to")
		}
	}
	checkIdentifier("schema", t.Schema, fault)
	checkIdentifier("name", t.Name, fault)
	usedBy := make(map[string]string, len(t.Columns))
	for _, column := range Columns() {
		name, exists := t.ColumnName(column.Name)
		field := "columns." + column.Name
		if column.kind == kindHash && exists && t.Mapped() {
			fault(field, fmt.Sprintf("%q", name), "nothing: the hash of a mapped table's payload is always computed")
			continue
		}
		if !exists {
			if column.Required {
				fault(field, "an empty name", "the table's name for it: this column is required")
			}
			continue
		}
		checkIdentifier(field, name, fault)
		if other, taken := usedBy[name]; taken {
			fault(field, fmt.Sprintf("%q, which stands for %s already", name, other), "a column of its own, or \"\" for none")
		}
		usedBy[name] = column.Name
	}
	for _, key := range slices.Sorted(maps.Keys(t.Columns)) {
		if !isStandard(key) {
			fault("columns", fmt.Sprintf("key %q", key), strings.Join(standardNames(), ", "))
		}
	}
	return errors.Join(faults...)
}

func checkIdentifier(field, name string, fault func(field, found, allowed string)) {
	switch {
	case len(name) > maxIdentifierBytes:
		fault(field, fmt.Sprintf("%d bytes", len(name)), "at most 63 bytes, as PostgreSQL has it")
	case strings.ContainsRune(name, 0):
		fault(field, "a NUL character", "a PostgreSQL name")
	}
}

package outbox

import "slices"

// Column is one standard column of the outbox, as relayops.outbox_events has it.
type Column struct {
	// Name is the standard name, such as event_id.
	Name string
	// Required columns have to exist in a mapped table; the relay does without the others.
	Required bool
	// Types are the types that a mapped table's column may have, as PostgreSQL's format_type prints them without a
	// length or precision; "enum" stands for any enum type. A domain counts as its base type.
	//
	// A timestamp without time zone holds UTC. Whoever compares one with now() sets the session's TimeZone to UTC.
	Types []string

	kind columnKind
}

type columnKind int

const (
	kindText columnKind = iota
	kindPayload
	kindHash
	kindHeaders
	kindInteger
	kindBigint
	kindTime
)

var (
	textTypes     = []string{"text", "character varying"}
	nameTypes     = []string{"text", "character varying", "uuid"}
	jsonTypes     = []string{"jsonb", "json"}
	integerTypes  = []string{"integer", "smallint"}
	positionTypes = []string{"bigint", "integer"}
	timeTypes     = []string{"timestamp with time zone", "timestamp without time zone"}
)

var standardColumns = []Column{
	{Name: "position", Types: positionTypes, kind: kindBigint},
	{Name: "event_id", Required: true, Types: []string{"uuid", "text", "character varying"}, kind: kindText},
	{Name: "org_id", Required: true, Types: nameTypes, kind: kindText},
	{Name: "event_type", Required: true, Types: []string{"text", "character varying", "enum"}, kind: kindText},
	{Name: "event_version", Types: integerTypes, kind: kindInteger},
	{Name: "aggregate_type", Types: []string{"text", "character varying", "enum"}, kind: kindText},
	{Name: "aggregate_id", Types: nameTypes, kind: kindText},
	{Name: "correlation_id", Types: nameTypes, kind: kindText},
	{Name: "causation_id", Types: nameTypes, kind: kindText},
	{Name: "payload", Required: true, Types: jsonTypes, kind: kindPayload},
	{Name: "payload_sha256", Types: []string{"bytea"}, kind: kindHash},
	{Name: "headers", Types: jsonTypes, kind: kindHeaders},
	{Name: "occurred_at", Required: true, Types: timeTypes, kind: kindTime},
	{Name: "created_at", Types: timeTypes, kind: kindTime},
	{Name: "status", Required: true, Types: []string{"text", "character varying", "enum"}, kind: kindText},
	{Name: "available_at", Required: true, Types: timeTypes, kind: kindTime},
	{Name: "attempts", Required: true, Types: integerTypes, kind: kindInteger},
	{Name: "operation_version", Types: integerTypes, kind: kindInteger},
	{Name: "last_error", Types: textTypes, kind: kindText},
	{Name: "published_at", Types: timeTypes, kind: kindTime},
	{Name: "stream", Types: textTypes, kind: kindText},
	{Name: "stream_seq", Types: []string{"bigint"}, kind: kindBigint},
}

// Columns are the standard columns, in the order of relayops.outbox_events.
func Columns() []Column { return slices.Clone(standardColumns) }

func standardColumn(name string) Column {
	return standardColumns[slices.IndexFunc(standardColumns, func(c Column) bool { return c.Name == name })]
}

func isStandard(name string) bool {
	return slices.ContainsFunc(standardColumns, func(c Column) bool { return c.Name == name })
}

func standardNames() []string {
	names := make([]string, len(standardColumns))
	for i, column := range standardColumns {
		names[i] = column.Name
	}
	return names
}

package schema

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/api/outbox"
)

// TableError lists everything that keeps a table from being an outbox.
type TableError struct {
	// Table is the table's name.
	Table  string
	Faults []TableFault
}

// TableFault is one fault: where, what was found, what is allowed or to be done.
type TableFault struct{ Where, Found, Allowed string }

func (f TableFault) String() string {
	return fmt.Sprintf("%s: found %s, allowed: %s", f.Where, f.Found, f.Allowed)
}

func (e *TableError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, fault := range e.Faults {
		lines[i] = fault.String()
	}
	return fmt.Sprintf("table %s cannot be the outbox:\n  %s", e.Table, strings.Join(lines, "\n  "))
}

// Use is what a role does with the outbox.
type Use int

const (
	// Relay reads the outbox and marks its rows.
	Relay Use = iota
	// Worker reads large payloads from the outbox and writes the events that pipelines emit.
	Worker
)

// CheckTable checks that a table of the application's own can serve as the outbox, and that this session's role may
// use it as a relay or a worker does. The error is a [TableError] with every fault, each missing or mistyped column
// named; warnings are what makes the table slow or keeps producers out, and keep no relay from working.
//
// Of relayops.outbox_events it checks the rights alone: [Check] has looked at its columns.
//
// Without a use it checks for a relay.
func CheckTable(ctx context.Context, db DB, table outbox.Table, uses ...Use) (warnings []string, err error) {
	if len(uses) == 0 {
		uses = []Use{Relay}
	}
	if err := table.Validate(); err != nil {
		return nil, err
	}
	var found *foundTable
	var who session
	err = inTransaction(ctx, db, pgx.ReadOnly, func(tx pgx.Tx) (err error) {
		if who, err = checkServer(ctx, tx); err != nil {
			return err
		}
		found, err = readTable(ctx, tx, table)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("check table %s: %w", table, err)
	}
	judgement := judge(table, found, who.role, uses)
	if len(judgement.faults) > 0 {
		return judgement.warnings, &TableError{Table: table.String(), Faults: judgement.faults}
	}
	return judgement.warnings, nil
}

// judgement collects what is wrong with a table. It is pure: everything that it needs of the database is in found.
type judgement struct {
	table    outbox.Table
	found    *foundTable
	faults   []TableFault
	warnings []string
}

func judge(table outbox.Table, found *foundTable, role string, uses []Use) judgement {
	j := judgement{table: table, found: found}
	if found == nil {
		j.fault("table", "nothing of this name", "an existing table; names are case-sensitive")
		return j
	}
	if found.kind != "r" && found.kind != "p" {
		j.fault("table", relationKinds[found.kind], "a table")
		return j
	}
	j.rights(role, uses)
	if table.Mapped() {
		for _, column := range outbox.Columns() {
			j.column(column)
		}
		j.keys()
		j.claimIndex()
		j.unfilled()
	}
	return j
}

func (j *judgement) fault(where, found, allowed string) {
	j.faults = append(j.faults, TableFault{Where: where, Found: found, Allowed: allowed})
}

func (j *judgement) warn(format string, arguments ...any) {
	j.warnings = append(j.warnings, fmt.Sprintf("table %s: ", j.table)+fmt.Sprintf(format, arguments...))
}

func (j *judgement) rights(role string, uses []Use) {
	if !j.found.mayUseSchema {
		schema, _ := j.table.Names()
		j.fault("rights", "role "+role+" without USAGE on the schema",
			"GRANT USAGE ON SCHEMA "+pgx.Identifier{schema}.Sanitize()+" TO "+role)
	}
	if !j.found.maySelect {
		j.fault("rights", "role "+role+" without SELECT", "GRANT SELECT ON "+j.table.Identifier()+" TO "+role)
	}
	if slices.Contains(uses, Relay) {
		j.columnRight("UPDATE", role, isWritten, func(c foundColumn) bool { return c.mayUpdate })
	}
	if slices.Contains(uses, Worker) {
		j.columnRight("INSERT", role, j.isFilled, func(c foundColumn) bool { return c.mayInsert })
	}
}

// columnRight checks a right on those of the table's columns that need it.
func (j *judgement) columnRight(right, role string, needs func(standard string) bool, has func(foundColumn) bool) {
	var missing []string
	for _, standard := range outbox.Columns() {
		name, isMapped := j.table.ColumnName(standard.Name)
		if column, exists := j.found.columns[name]; isMapped && exists && needs(standard.Name) && !has(column) {
			quoted, _ := j.table.Column(standard.Name)
			missing = append(missing, quoted)
		}
	}
	if columns := strings.Join(missing, ", "); columns != "" {
		j.fault("rights", "role "+role+" without "+right+" of "+columns,
			"GRANT "+right+" ("+columns+") ON "+j.table.Identifier()+" TO "+role)
	}
}

// isFilled: outbox.Writer fills these columns.
func (j *judgement) isFilled(standard string) bool {
	switch standard {
	case "status", "attempts", "available_at", "created_at", "operation_version":
		return j.table.Mapped()
	case "position", "payload_sha256", "last_error", "published_at", "stream", "stream_seq":
		return false
	default:
		return true
	}
}

// shortest are the least lengths that character varying(n) columns need, in characters.
var shortest = map[string]int{
	"status":     len(outbox.StatusPublished),
	"last_error": 64,
	"stream":     255,
}

func (j *judgement) column(standard outbox.Column) {
	name, isMapped := j.table.ColumnName(standard.Name)
	if !isMapped {
		return
	}
	where := "column " + name
	if name != standard.Name {
		where += " (for " + standard.Name + ")"
	}
	column, exists := j.found.columns[name]
	if !exists {
		allowed := strings.Join(standard.Types, " or ")
		if !standard.Required {
			allowed += "; or map " + standard.Name + ` to "" where the table has none`
		}
		j.fault(where, j.missing(name), allowed)
		return
	}
	kind := column.kind
	if column.labels != nil {
		kind = "enum"
	}
	switch least, bounded := shortest[standard.Name], column.length > 0; {
	case !slices.Contains(standard.Types, kind):
		j.fault(where, "type "+column.kind, strings.Join(standard.Types, " or "))
	case bounded && column.length < least:
		j.fault(where, fmt.Sprintf("%s(%d)", column.kind, column.length), fmt.Sprintf("at least %d characters", least))
	case standard.Name == "status" && column.labels != nil:
		j.statusLabels(where, column.labels)
	case standard.Name == "event_id" && kind != "uuid":
		j.warn("%s is %s: a row whose id is no UUID ends FAILED", where, column.kind)
	}
	if column.generated && isWritten(standard.Name) {
		j.fault(where, "a generated column", "one that the relay can set")
	}
}

// missing says what the table has instead: a name in another case (orgId, org_id, orgid) is the usual mistake.
func (j *judgement) missing(name string) string {
	bare := func(name string) string { return strings.ReplaceAll(name, "_", "") }
	for other := range j.found.columns {
		if strings.EqualFold(bare(other), bare(name)) {
			return fmt.Sprintf("no such column, but %q", other)
		}
	}
	return "no such column"
}

func (j *judgement) statusLabels(where string, labels []string) {
	var missing []string
	for _, label := range []string{outbox.StatusPending, outbox.StatusPublished, outbox.StatusFailed} {
		if !slices.Contains(labels, label) {
			missing = append(missing, label)
		}
	}
	if len(missing) > 0 {
		j.fault(where, "an enum without "+strings.Join(missing, ", "),
			"an enum with PENDING, PUBLISHED and FAILED (ALTER TYPE … ADD VALUE)")
	}
}

// isWritten: the relay sets these columns.
func isWritten(standard string) bool {
	switch standard {
	case "status", "available_at", "attempts", "last_error", "published_at", "stream", "stream_seq":
		return true
	default:
		return false
	}
}

// keys checks that one (org, id) is one row, which is what "the same event" means.
func (j *judgement) keys() {
	id, _ := j.table.ColumnName("event_id")
	org, _ := j.table.ColumnName("org_id")
	hasKey := false
	for _, index := range j.found.indexes {
		if !index.unique || index.partial || index.expressions {
			continue
		}
		switch columns := index.columns; {
		case len(columns) == 2 && slices.Contains(columns, id) && slices.Contains(columns, org):
			hasKey = true
		case len(columns) == 1 && columns[0] == id:
			j.warn("index %s makes %s unique without %s: two organisations cannot have an event of the same id",
				index.name, id, org)
		}
	}
	if !hasKey {
		orgQuoted, _ := j.table.Column("org_id")
		idQuoted, _ := j.table.Column("event_id")
		j.fault("unique key", fmt.Sprintf("none on exactly (%s, %s)", org, id),
			fmt.Sprintf("CREATE UNIQUE INDEX CONCURRENTLY ON %s (%s, %s)", j.table.Identifier(), orgQuoted, idQuoted))
	}
}

// claimIndex checks that due rows can be found without reading the published ones.
func (j *judgement) claimIndex() {
	status, _ := j.table.ColumnName("status")
	due, _ := j.table.ColumnName("available_at")
	for _, index := range j.found.indexes {
		pendingOnly := index.partial && strings.Contains(index.predicate, outbox.StatusPending)
		switch columns := index.columns; {
		case pendingOnly && len(columns) > 0 && columns[0] == due:
			return
		case !index.partial && len(columns) > 1 && columns[0] == status && columns[1] == due:
			return
		}
	}
	statusQuoted, _ := j.table.Column("status")
	dueQuoted, _ := j.table.Column("available_at")
	j.warn("no index finds the rows that are due, so every claim reads the whole table: "+
		"CREATE INDEX CONCURRENTLY ON %s (%s) WHERE %s = 'PENDING'", j.table.Identifier(), dueQuoted, statusQuoted)
}

// unfilled warns of columns that want a value which RelayOps, as a producer, does not know.
func (j *judgement) unfilled() {
	filled := make(map[string]bool)
	for _, column := range outbox.Columns() {
		if name, exists := j.table.ColumnName(column.Name); exists {
			filled[name] = true
		}
	}
	var names []string
	for name, column := range j.found.columns {
		if column.notNull && !column.hasDefault && !filled[name] {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		j.warn("%s must have a value and no default: api/outbox and emit-event nodes cannot insert here",
			strings.Join(names, ", "))
	}
}

var relationKinds = map[string]string{
	"v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence", "i": "an index",
	"I": "an index", "c": "a type", "t": "a TOAST table",
}

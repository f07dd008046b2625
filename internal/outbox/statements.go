package outbox

import (
	"fmt"
	"slices"
	"strings"

	table "github.com/relayops/relayops/api/outbox"
)

// statements are the SQL of one table mapping.
type statements struct {
	backlog, claim, get                  string
	markPublished, markRetry, markFailed string
}

// envelopeColumns are what scanEnvelope scans, in its order. The payload, its hash and its length come apart.
var envelopeColumns = []string{
	"event_id", "org_id", "event_type", "event_version", "aggregate_type", "aggregate_id", "correlation_id",
	"causation_id", "headers", "occurred_at", "operation_version", "position", "attempts",
}

func newStatements(t table.Table) statements {
	s := statements{
		backlog: backlogSQL(t),
		claim:   claimSQL(t),
		get:     getSQL(t),
	}
	published := []string{fmt.Sprintf("%s = '%s'", must(t, "status"), table.StatusPublished)}
	for _, set := range [][2]string{
		{"published_at", "clock_timestamp()"}, {"stream", "$4"}, {"stream_seq", "u.sequence"}, {"last_error", "''"},
	} {
		if column, exists := t.Column(set[0]); exists {
			published = append(published, column+" = "+set[1])
		}
	}
	s.markPublished = markSQL(t, published,
		"unnest($1::tid[], $2::text[], $3::text[], $5::bigint[]) AS u(place, org, id, sequence)",
		// The parameter has a type even where the table has no column for it.
		"$4::text IS NOT NULL")

	failed := []string{fmt.Sprintf("%s = %s + 1", must(t, "attempts"), t.Read("o", "attempts"))}
	if column, exists := t.Column("last_error"); exists {
		failed = append(failed, column+" = u.code")
	}
	due := must(t, "available_at") + " = clock_timestamp() + u.delay * interval '1 microsecond'"
	retry := slices.Concat(failed, []string{due})
	s.markRetry = markSQL(t, retry,
		"unnest($1::tid[], $2::text[], $3::text[], $4::text[], $5::bigint[]) AS u(place, org, id, code, delay)", "")
	final := slices.Concat(failed, []string{fmt.Sprintf("%s = '%s'", must(t, "status"), table.StatusFailed)})
	s.markFailed = markSQL(t, final,
		"unnest($1::tid[], $2::text[], $3::text[], $4::text[]) AS u(place, org, id, code)", "")
	return s
}

// backlogSQL counts due and waiting rows up to $1 each, and gives the age of the oldest due one in microseconds, 0
// where none is due. All of it reads the head of the partial index on pending rows. Where $2 is true it counts failed
// rows, too.
func backlogSQL(t table.Table) string {
	return fmt.Sprintf(`SELECT
  (SELECT count(*) FROM (SELECT FROM %[1]s WHERE %[2]s = '%[4]s' AND %[3]s <= now() ORDER BY %[3]s LIMIT $1) AS d),
  (SELECT count(*) FROM (SELECT FROM %[1]s WHERE %[2]s = '%[4]s' AND %[3]s > now() ORDER BY %[3]s LIMIT $1) AS w),
  coalesce((SELECT greatest(0, (extract(epoch FROM now()) * 1000000)::bigint - coalesce(%[5]s, 0))
    FROM %[1]s AS o WHERE %[2]s = '%[4]s' AND %[3]s <= now() ORDER BY %[3]s LIMIT 1), 0),
  CASE WHEN $2 THEN (SELECT count(*) FROM (SELECT FROM %[1]s WHERE %[2]s = '%[6]s' LIMIT $1) AS f) ELSE 0 END`,
		t.Identifier(), must(t, "status"), must(t, "available_at"), table.StatusPending, t.Read("o", "available_at"),
		table.StatusFailed)
}

// claimSQL locks and reads up to $1 due rows, oldest first. A payload longer than $2 bytes is not read: its length and
// hash are.
func claimSQL(t table.Table) string {
	order := []string{must(t, "available_at")}
	for _, tie := range []string{"position", "created_at", "occurred_at"} {
		if column, exists := t.Column(tie); exists {
			order = append(order, column)
			break
		}
	}
	// OFFSET 0 keeps the planner from computing the payload's text anew for each use.
	const body, bytes = "o.relayops_body", "octet_length(o.relayops_body)"
	return fmt.Sprintf(`SELECT o.relayops_place, %s, %s, CASE WHEN %s <= $2 THEN %s END, %s
FROM (SELECT l.*, %s AS relayops_body
  FROM (SELECT ctid AS relayops_place, * FROM %s WHERE %s = '%s' AND %s <= now()
    ORDER BY %s LIMIT $1 FOR UPDATE SKIP LOCKED) AS l OFFSET 0) AS o`,
		envelopeReads(t), bytes, bytes, body, hashRead(t, body), t.Read("l", "payload"), t.Identifier(), must(t, "status"),
		table.StatusPending, must(t, "available_at"), strings.Join(order, ", "))
}

func getSQL(t table.Table) string {
	return fmt.Sprintf(`SELECT %s, b.body, %s
FROM %s AS o CROSS JOIN LATERAL (SELECT %s AS body OFFSET 0) AS b
WHERE o.%s = $1 AND o.%s = $2`,
		envelopeReads(t), hashRead(t, "b.body"), t.Identifier(), t.Read("o", "payload"), must(t, "org_id"),
		must(t, "event_id"))
}

func envelopeReads(t table.Table) string {
	reads := make([]string, len(envelopeColumns))
	for i, column := range envelopeColumns {
		reads[i] = t.Read("o", column)
	}
	return strings.Join(reads, ", ")
}

// hashRead is the hash of the payload's text. A mapped table's own hash column may be of other bytes, so it is not
// believed.
func hashRead(t table.Table, body string) string {
	if t.Mapped() {
		return "sha256(convert_to(" + body + ", 'UTF8'))"
	}
	return t.Read("o", "payload_sha256")
}

func markSQL(t table.Table, set []string, from, also string) string {
	sql := fmt.Sprintf("UPDATE %s AS o SET %s FROM %s WHERE o.ctid = u.place AND %s = u.org AND %s = u.id",
		t.Identifier(), strings.Join(set, ", "), from, t.Read("o", "org_id"), t.Read("o", "event_id"))
	if also != "" {
		sql += " AND " + also
	}
	return sql
}

// must is the quoted name of a required column; Validate has seen that it exists.
func must(t table.Table, column string) string {
	quoted, _ := t.Column(column)
	return quoted
}

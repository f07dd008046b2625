package schema

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/relayops/relayops/api/outbox"
)

// foundTable is what the catalogue says of a table.
type foundTable struct {
	// kind is pg_class.relkind.
	kind                    string
	maySelect, mayUseSchema bool
	columns                 map[string]foundColumn
	indexes                 []foundIndex
}

type foundColumn struct {
	// kind is the type as format_type prints it, without a length; of a domain, the base type.
	kind string
	// length of a character varying(n); 0: none.
	length int
	// labels of an enum, nil for another type.
	labels                         []string
	notNull, hasDefault, generated bool
	// mayUpdate, mayInsert: this session's role may.
	mayUpdate, mayInsert bool
}

type foundIndex struct {
	name                         string
	unique, partial, expressions bool
	// columns of the key, in order; those that an index only includes are left out.
	columns   []string
	predicate string
}

const (
	tableQuery = `SELECT c.oid, c.relkind::text, has_table_privilege(c.oid, 'SELECT'),
			has_schema_privilege(n.oid, 'USAGE')
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1::text AND c.relname = $2::text`

	// A domain is followed to its base type; its length lies with the domain that names one.
	columnsQuery = `SELECT a.attname::text, format_type(b.oid, NULL),
			CASE WHEN b.oid IN ('varchar'::regtype, 'bpchar'::regtype) AND b.modifier > 4 THEN b.modifier - 4 ELSE 0 END,
			CASE WHEN b.kind = 'e' THEN ARRAY(SELECT e.enumlabel::text FROM pg_catalog.pg_enum e
				WHERE e.enumtypid = b.oid ORDER BY e.enumsortorder) END,
			a.attnotnull, a.atthasdef OR a.attidentity <> '', a.attgenerated <> '' OR a.attidentity = 'a',
			has_column_privilege(a.attrelid, a.attnum, 'UPDATE'), has_column_privilege(a.attrelid, a.attnum, 'INSERT')
		FROM pg_catalog.pg_attribute a CROSS JOIN LATERAL (
			WITH RECURSIVE base AS (
				SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod, a.atttypmod AS modifier
				FROM pg_catalog.pg_type t WHERE t.oid = a.atttypid
				UNION ALL
				SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod, greatest(base.modifier, base.typtypmod)
				FROM base JOIN pg_catalog.pg_type t ON t.oid = base.typbasetype WHERE base.typtype = 'd')
			SELECT base.oid, base.typtype AS kind, base.modifier FROM base WHERE base.typtype <> 'd') AS b
		WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped`

	indexesQuery = `SELECT c.relname::text, i.indisunique, i.indpred IS NOT NULL, i.indexprs IS NOT NULL,
			ARRAY(SELECT coalesce(a.attname::text, '') FROM unnest(i.indkey::smallint[]) WITH ORDINALITY AS k(attnum, n)
				LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
				WHERE k.n <= i.indnkeyatts ORDER BY k.n),
			coalesce(pg_get_expr(i.indpred, i.indrelid), '')
		FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
		WHERE i.indrelid = $1::oid AND i.indisvalid ORDER BY c.relname`
)

// readTable gives what the catalogue says, or nil where there is no such table.
func readTable(ctx context.Context, tx pgx.Tx, table outbox.Table) (*foundTable, error) {
	schema, name := table.Names()
	found := &foundTable{columns: make(map[string]foundColumn)}
	var oid uint32
	err := tx.QueryRow(ctx, tableQuery, pgx.QueryExecModeExec, schema, name).
		Scan(&oid, &found.kind, &found.maySelect, &found.mayUseSchema)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look the table up: %w", err)
	}
	rows, err := tx.Query(ctx, columnsQuery, pgx.QueryExecModeExec, oid)
	if err != nil {
		return nil, fmt.Errorf("read its columns: %w", err)
	}
	var column foundColumn
	_, err = pgx.ForEachRow(rows, []any{
		&name, &column.kind, &column.length, &column.labels, &column.notNull, &column.hasDefault, &column.generated,
		&column.mayUpdate, &column.mayInsert,
	}, func() error {
		found.columns[name] = column
		column.labels = nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read its columns: %w", err)
	}
	rows, err = tx.Query(ctx, indexesQuery, pgx.QueryExecModeExec, oid)
	if err != nil {
		return nil, fmt.Errorf("read its indexes: %w", err)
	}
	var index foundIndex
	_, err = pgx.ForEachRow(rows, []any{
		&index.name, &index.unique, &index.partial, &index.expressions, &index.columns, &index.predicate,
	}, func() error {
		found.indexes = append(found.indexes, index)
		index.columns = nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read its indexes: %w", err)
	}
	return found, nil
}

package schema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// DB is a *pgx.Conn or a *pgxpool.Pool.
type DB interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

const (
	// migrationLock is the key of the advisory lock, "relayops" in ASCII.
	migrationLock = 0x72656c61796f7073
	// minimumServer is PostgreSQL 13.
	minimumServer = 130000
)

// Migrate applies the migrations that the database does not have, in order, each in a transaction of its own, and
// gives those that it applied. On an error the ones before it stay applied.
//
// Errors: [NewerError], [ChecksumError], [PrivilegeError], and the database's own, wrapped.
func Migrate(ctx context.Context, db DB) ([]Migration, error) {
	return migrate(ctx, db, known)
}

func migrate(ctx context.Context, db DB, migrations []Migration) (applied []Migration, err error) {
	for {
		done, err := applyNext(ctx, db, migrations)
		if err != nil {
			return applied, err
		}
		if done == nil {
			return applied, nil
		}
		applied = append(applied, *done)
	}
}

// applyNext applies the first migration that is not recorded; nil: there is none.
func applyNext(ctx context.Context, db DB, migrations []Migration) (applied *Migration, err error) {
	err = inTransaction(ctx, db, pgx.ReadWrite, func(tx pgx.Tx) error {
		who, err := checkServer(ctx, tx)
		if err != nil {
			return err
		}
		// Whoever waits here reads what the other one recorded: under READ COMMITTED each statement sees anew.
		_, err = tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1::bigint)", pgx.QueryExecModeExec, int64(migrationLock))
		if err != nil {
			return fmt.Errorf("lock the schema: %w", err)
		}
		recorded, err := readRecorded(ctx, tx, who)
		if err != nil {
			return err
		}
		next, err := pending(recorded, migrations)
		if err != nil || len(next) == 0 {
			return err
		}
		if err := ensureBookkeeping(ctx, tx, who); err != nil {
			return err
		}
		at, err := apply(ctx, tx, who, &next[0])
		if err != nil {
			return err
		}
		next[0].AppliedAt = &at
		applied = &next[0]
		return nil
	})
	return applied, err
}

// pending gives the migrations that are not recorded, or how the record contradicts this binary. Pure.
func pending(recorded map[int]Migration, migrations []Migration) ([]Migration, error) {
	if newest := slices.Max(append(slices.Collect(maps.Keys(recorded)), 0)); newest > len(migrations) {
		return nil, &NewerError{Found: newest, Known: len(migrations)}
	}
	var missing []Migration
	for _, migration := range migrations {
		record, isRecorded := recorded[migration.Version]
		switch {
		case !isRecorded:
			missing = append(missing, migration)
		case record.Checksum != migration.Checksum:
			return nil, &ChecksumError{Migration: migration, Recorded: record.Checksum}
		}
	}
	return missing, nil
}

func apply(ctx context.Context, tx pgx.Tx, who session, migration *Migration) (at time.Time, err error) {
	const record = `INSERT INTO relayops.schema_migrations (version, name, checksum)
		VALUES ($1::integer, $2::text, $3::text) RETURNING applied_at`
	if _, err := tx.Exec(ctx, migration.sql); err != nil {
		return at, who.explain(fmt.Errorf("apply migration %04d_%s: %w", migration.Version, migration.Name, err),
			"create tables and functions in schema relayops", "GRANT USAGE, CREATE ON SCHEMA relayops TO {role}")
	}
	err = tx.QueryRow(ctx, record, pgx.QueryExecModeExec, migration.Version, migration.Name, migration.Checksum).Scan(&at)
	if err != nil {
		return at, who.explain(fmt.Errorf("record migration %04d_%s: %w", migration.Version, migration.Name, err),
			"record a migration", "GRANT SELECT, INSERT ON relayops.schema_migrations TO {role}")
	}
	return at, nil
}

// ensureBookkeeping makes the schema and its record. CREATE … IF NOT EXISTS asks for the right to create even where
// nothing is to be created, so it is asked only where something is.
func ensureBookkeeping(ctx context.Context, tx pgx.Tx, who session) error {
	hasSchema, hasTable, err := bookkeeping(ctx, tx)
	if err != nil {
		return err
	}
	if !hasSchema {
		if _, err := tx.Exec(ctx, "CREATE SCHEMA relayops"); err != nil {
			return who.explain(fmt.Errorf("create schema relayops: %w", err),
				"create schema relayops in database {database}",
				"GRANT CREATE ON DATABASE {database} TO {role} (or CREATE SCHEMA relayops AUTHORIZATION {role})")
		}
	}
	if !hasTable {
		if _, err := tx.Exec(ctx, `CREATE TABLE relayops.schema_migrations (
			version    integer     PRIMARY KEY,
			name       text        NOT NULL,
			checksum   text        NOT NULL,
			applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
		)`); err != nil {
			return who.explain(fmt.Errorf("create table relayops.schema_migrations: %w", err),
				"create tables in schema relayops", "GRANT USAGE, CREATE ON SCHEMA relayops TO {role}")
		}
	}
	return nil
}

func bookkeeping(ctx context.Context, tx pgx.Tx) (hasSchema, hasTable bool, err error) {
	// The catalogue is readable for everybody; to_regclass would ask for USAGE on the schema.
	const query = `SELECT count(*) > 0, coalesce(bool_or(EXISTS (SELECT FROM pg_catalog.pg_class c
			WHERE c.relnamespace = n.oid AND c.relname = 'schema_migrations')), false)
		FROM pg_catalog.pg_namespace n WHERE n.nspname = 'relayops'`
	if err := tx.QueryRow(ctx, query, pgx.QueryExecModeExec).Scan(&hasSchema, &hasTable); err != nil {
		return false, false, fmt.Errorf("look for schema relayops: %w", err)
	}
	return hasSchema, hasTable, nil
}

// readRecorded gives the migrations that the database has, by version.
func readRecorded(ctx context.Context, tx pgx.Tx, who session) (map[int]Migration, error) {
	_, hasTable, err := bookkeeping(ctx, tx)
	if err != nil || !hasTable {
		return nil, err
	}
	const query = "SELECT version, name, checksum, applied_at FROM relayops.schema_migrations"
	rows, err := tx.Query(ctx, query, pgx.QueryExecModeExec)
	if err != nil {
		return nil, explainRead(who, err)
	}
	recorded := make(map[int]Migration)
	var one Migration
	var at time.Time
	if _, err := pgx.ForEachRow(rows, []any{&one.Version, &one.Name, &one.Checksum, &at}, func() error {
		appliedAt := at
		one.AppliedAt = &appliedAt
		recorded[one.Version] = one
		return nil
	}); err != nil {
		return nil, explainRead(who, err)
	}
	return recorded, nil
}

func explainRead(who session, err error) error {
	return who.explain(fmt.Errorf("read relayops.schema_migrations: %w", err), "read relayops.schema_migrations",
		"GRANT USAGE ON SCHEMA relayops TO {role}; GRANT SELECT ON relayops.schema_migrations TO {role}")
}

// session is who is migrating what.
type session struct{ role, database string }

// checkServer refuses a server that the migrations are not written for.
func checkServer(ctx context.Context, tx pgx.Tx) (who session, err error) {
	const query = `SELECT current_setting('server_version_num')::integer, current_setting('server_version'),
		current_setting('server_encoding'), quote_ident(current_user), quote_ident(current_database())`
	var number int
	var version, encoding string
	err = tx.QueryRow(ctx, query, pgx.QueryExecModeExec).Scan(&number, &version, &encoding, &who.role, &who.database)
	switch {
	case err != nil:
		return who, fmt.Errorf("ask for the server's version: %w", err)
	case number < minimumServer:
		return who, fmt.Errorf("PostgreSQL: found version %s, allowed: 13 or later", version)
	case encoding != "UTF8":
		return who, fmt.Errorf("database encoding: found %s, allowed: UTF8 "+
			"(CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0)", encoding)
	}
	return who, nil
}

// explain turns "insufficient privilege" into a [PrivilegeError]; action and grant may name {role} and {database}.
// Any other error is given back as it is.
func (s session) explain(err error, action, grant string) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "42501" {
		return err
	}
	fill := strings.NewReplacer("{role}", s.role, "{database}", s.database)
	return &PrivilegeError{Role: s.role, Action: fill.Replace(action), Grant: fill.Replace(grant), Err: err}
}

// inTransaction runs work in a READ COMMITTED transaction, whatever the role's own default is, with a search_path that
// no schema of the application is on.
func inTransaction(ctx context.Context, db DB, mode pgx.TxAccessMode, work func(tx pgx.Tx) error) (err error) {
	tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: mode})
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	defer func() {
		if err != nil {
			// The first error says what happened; a rollback that fails too ends the connection.
			_ = tx.Rollback(context.WithoutCancel(ctx))
		}
	}()
	const settings = "SET LOCAL search_path TO pg_catalog, pg_temp; SET LOCAL statement_timeout TO 0"
	if _, err := tx.Exec(ctx, settings); err != nil {
		return fmt.Errorf("set up the transaction: %w", err)
	}
	if err := work(tx); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

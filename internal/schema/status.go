package schema

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Status gives the migrations that this binary knows, in order, with the time at which the database got them. It
// takes no lock and writes nothing. A database without the schema has none of them. It fails with [NewerError],
// [ChecksumError] or [PrivilegeError] as [Migrate] does; beside the first two the migrations are given all the same.
func Status(ctx context.Context, db DB) ([]Migration, error) {
	return status(ctx, db, known)
}

func status(ctx context.Context, db DB, migrations []Migration) ([]Migration, error) {
	var recorded map[int]Migration
	err := inTransaction(ctx, db, pgx.ReadOnly, func(tx pgx.Tx) error {
		who, err := checkServer(ctx, tx)
		if err != nil {
			return err
		}
		recorded, err = readRecorded(ctx, tx, who)
		return err
	})
	if err != nil {
		return nil, err
	}
	all := slices.Clone(migrations)
	for i := range all {
		all[i].AppliedAt = recorded[all[i].Version].AppliedAt
	}
	_, err = pending(recorded, migrations)
	return all, err
}

// Check reports whether the database has exactly the schema that this binary works with: nil, [OutdatedError],
// [NewerError], [ChecksumError], [PrivilegeError], or a database error, wrapped.
func Check(ctx context.Context, db DB) error {
	all, err := status(ctx, db, known)
	if err != nil {
		return err
	}
	found := 0
	for _, migration := range all {
		if migration.AppliedAt == nil {
			return &OutdatedError{Found: found, Needed: len(all)}
		}
		found = migration.Version
	}
	return nil
}

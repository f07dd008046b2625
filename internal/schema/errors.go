package schema

import "fmt"

// NewerError says that the database was migrated by a newer version of RelayOps than this one.
type NewerError struct {
	// Found is the version in the database, Known the newest that this binary has.
	Found, Known int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("the database has schema version %d, this program knows versions up to %d: "+
		"run a newer version of RelayOps", e.Found, e.Known)
}

// ChecksumError says that a migration was applied from another text than the one that this binary has.
type ChecksumError struct {
	Migration Migration
	// Recorded is the checksum in the database.
	Recorded string
}

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("migration %04d_%s was applied with checksum %s, this program has %s: the two come from different "+
		"builds; use the build that migrated this database, or another database",
		e.Migration.Version, e.Migration.Name, e.Recorded, e.Migration.Checksum)
}

// OutdatedError says that migrations are missing from the database.
type OutdatedError struct {
	// Found is the version in the database, 0 for none; Needed the one that this binary works with.
	Found, Needed int
}

func (e *OutdatedError) Error() string {
	if e.Found == 0 {
		return "the database has no RelayOps schema: run relayops migrate up"
	}
	return fmt.Sprintf("the database has schema version %d, this program needs %d: run relayops migrate up",
		e.Found, e.Needed)
}

// PrivilegeError says that the database role lacks a right.
type PrivilegeError struct {
	// Role is the session's role, Action what it may not do, Grant the statement that an owner or administrator runs
	// to allow it.
	Role, Action, Grant string
	Err                 error
}

func (e *PrivilegeError) Error() string {
	return fmt.Sprintf("role %s may not %s: an owner or administrator has to run: %s", e.Role, e.Action, e.Grant)
}

func (e *PrivilegeError) Unwrap() error { return e.Err }

package schema

// For the tests outside the package, which need real servers.
var (
	Load          = load
	MigrateTo     = migrate
	StatusAgainst = status
)

// NewMigration makes a migration of a text.
func NewMigration(version int, name, sql string) Migration {
	return Migration{Version: version, Name: name, Checksum: name, sql: sql}
}

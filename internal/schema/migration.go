package schema

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"time"
)

//go:embed migrations/*.sql
var files embed.FS

// Migration is one step of the schema.
type Migration struct {
	// Version counts from 1, without gaps.
	Version int `json:"version"`
	// Name is the file's name without version and suffix, such as data_plane.
	Name string `json:"name"`
	// Checksum is the SHA-256 of the file, in hexadecimal.
	Checksum string `json:"checksum"`
	// AppliedAt is when it was applied, by the database's clock; nil: it is not.
	AppliedAt *time.Time `json:"appliedAt,omitempty"`

	sql string
}

var known = mustLoad(files)

// Version is the version of the schema that this binary knows.
func Version() int { return len(known) }

// The names of embedded files are fixed when the binary is built: a bad one is a bug, found by any test.
func mustLoad(from fs.FS) []Migration {
	migrations, err := load(from)
	if err != nil {
		panic(fmt.Sprintf("schema: %v", err))
	}
	return migrations
}

var fileName = regexp.MustCompile(`^([0-9]{4})_([a-z0-9_]+)\.sql$`)

// load reads the migrations, in order. Their versions are 1, 2, 3 and so on.
func load(from fs.FS) ([]Migration, error) {
	entries, err := fs.ReadDir(from, "migrations")
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	migrations := make([]Migration, 0, len(entries))
	for _, entry := range entries {
		parts := fileName.FindStringSubmatch(entry.Name())
		if parts == nil {
			return nil, fmt.Errorf("migration %s: allowed: NNNN_name.sql", entry.Name())
		}
		version, err := strconv.Atoi(parts[1])
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", entry.Name(), err)
		}
		if want := len(migrations) + 1; version != want {
			return nil, fmt.Errorf("migration %s: found version %d, allowed: %d", entry.Name(), version, want)
		}
		sql, err := fs.ReadFile(from, path.Join("migrations", entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read migration %s: %w", entry.Name(), err)
		}
		sum := sha256.Sum256(sql)
		migrations = append(migrations, Migration{
			Version: version, Name: parts[2], Checksum: hex.EncodeToString(sum[:]), sql: string(sql),
		})
	}
	return migrations, nil
}

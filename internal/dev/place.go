package dev

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/relayops/relayops/internal/localpostgres"
)

// rootsPlace is where the private PostgreSQL of a relayops dev that root runs lies, if the account that it runs as
// cannot get to the data directory: somewhere below /root, as a rule.
const rootsPlace = "/var/lib/relayops"

// postgresPlace is the directory of the private PostgreSQL: in the data directory, unless the account that the server
// runs as cannot get there.
func postgresPlace(dataDir string) (dir string, elsewhere bool, err error) {
	inside := filepath.Join(dataDir, "postgres")
	reachable, err := localpostgres.Reachable(inside)
	if err != nil {
		return "", false, err
	}
	if reachable {
		return inside, false, nil
	}
	absolute, err := filepath.Abs(dataDir)
	if err != nil {
		return "", false, fmt.Errorf("make %s absolute: %w", dataDir, err)
	}
	// One place for each data directory, the same at the next start.
	sum := sha256.Sum256([]byte(absolute))
	place := filepath.Join(rootsPlace, "dev-"+hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(rootsPlace, 0o755); err != nil { //nolint:gosec // The server's account has to pass.
		return "", false, fmt.Errorf("PostgreSQL cannot run as root, its account cannot get to %s, and there is no other "+
			"place: %w; choose another one with --data-dir", absolute, err)
	}
	return place, true, nil
}

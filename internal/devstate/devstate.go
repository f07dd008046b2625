// Package devstate is the small file by which a running relayops dev tells other relayops commands in the same
// directory where its database and its broker are.
package devstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/relayops/relayops/internal/runspec"
)

// DefaultDir is the data directory of relayops dev, relative to the working directory.
const DefaultDir = ".relayops"

// fileName is the state file's name in the data directory.
const fileName = "dev.json"

// State says how to reach what one relayops dev runs. It stays after the process ends, so that its successor can ask
// for the same ports.
type State struct {
	// PID of the relayops dev that wrote it.
	PID int `json:"pid"`
	// Manifests is the file or directory that it runs.
	Manifests string `json:"manifests"`
	// DatabaseURL and NATSURL are what an application is pointed at.
	DatabaseURL string `json:"databaseUrl"`
	NATSURL     string `json:"natsUrl"`
	// Tables are the outbox tables of the relays, by relay key. A zero table is relayops.outbox_events.
	Tables    map[string]runspec.Table `json:"tables,omitempty"`
	StartedAt time.Time                `json:"startedAt"`
}

// Path of the state file in a data directory.
func Path(dataDir string) string { return filepath.Join(dataDir, fileName) }

// Read reads the state in a data directory. No file there is an error that wraps [fs.ErrNotExist].
func Read(dataDir string) (State, error) {
	raw, err := os.ReadFile(Path(dataDir))
	if err != nil {
		return State{}, fmt.Errorf("state of relayops dev: %w", err)
	}
	var state State
	if err := json.Unmarshal(raw, &state); err != nil {
		return State{}, fmt.Errorf("state of relayops dev in %s: %w", Path(dataDir), err)
	}
	return state, nil
}

// ReadOrNone is [Read] with the zero State for a directory that has none.
func ReadOrNone(dataDir string) (State, error) {
	state, err := Read(dataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	return state, err
}

// Write replaces the state in a data directory at once: a reader sees the old state or the new one. Only the owner
// may read it, for the URLs can hold passwords.
func Write(dataDir string, state State) error {
	raw, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return fmt.Errorf("state of relayops dev: %w", err)
	}
	temporary, err := os.CreateTemp(dataDir, fileName+".*")
	if err != nil {
		return fmt.Errorf("state of relayops dev: %w", err)
	}
	_, err = temporary.Write(append(raw, '\n'))
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), Path(dataDir))
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
		return fmt.Errorf("state of relayops dev: %w", err)
	}
	return nil
}

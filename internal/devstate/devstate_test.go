package devstate_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/relayops/relayops/internal/devstate"
	"github.com/relayops/relayops/internal/runspec"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	dir := t.TempDir()
	want := devstate.State{
		PID: 7, Manifests: "config/samples", DatabaseURL: "postgres://localhost/a", NATSURL: "nats://localhost:4222",
		Tables: map[string]runspec.Table{"dev/default/shop": {Name: "events"}}, StartedAt: time.Unix(1, 0).UTC(),
	}
	if err := devstate.Write(dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := devstate.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Read = %+v, want %+v", got, want)
	}
	info, err := os.Stat(devstate.Path(dir))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %o, want 600: the URLs hold passwords", info.Mode().Perm())
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("files = %v (%v), want the state alone", left, err)
	}
}

func TestNoStateIsToldApart(t *testing.T) {
	if _, err := devstate.Read(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of an empty directory = %v, want fs.ErrNotExist", err)
	}
	state, err := devstate.ReadOrNone(t.TempDir())
	if err != nil || state.DatabaseURL != "" {
		t.Errorf("ReadOrNone of an empty directory = %+v, %v", state, err)
	}
}

func TestABrokenStateIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(devstate.Path(dir), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := devstate.ReadOrNone(dir); err == nil {
		t.Error("ReadOrNone of a broken file gave no error")
	}
}

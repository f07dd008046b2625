package dev

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestFilesThatAreWrittenReplacedAndRemovedAreNoticedOnceTheyLieStill(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pipeline.yaml")
	write(t, path, "a")
	changed := startWatch(t, path)

	for _, content := range []string{"b", "c", "d"} {
		write(t, path, content)
	}
	expectOne(t, changed)

	// As editors do: write beside, and rename over.
	write(t, path+"~", "e")
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
	expectOne(t, changed)

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expectOne(t, changed)
}

func TestANewFileInAWatchedDirectoryIsNoticed(t *testing.T) {
	dir := t.TempDir()
	changed := startWatch(t, dir)
	write(t, filepath.Join(dir, "new.yaml"), "a")
	expectOne(t, changed)
}

func TestADirectoryThatIsMissingIsAnError(t *testing.T) {
	if _, err := watch(slog.New(slog.DiscardHandler), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("watch of a missing directory gave no error")
	}
}

func startWatch(t *testing.T, path string) <-chan struct{} {
	t.Helper()
	w, err := watch(slog.New(slog.DiscardHandler), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return w.changed
}

// expectOne waits for a change, and for the quiet after it.
func expectOne(t *testing.T, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Fatal("no change was noticed")
	}
	select {
	case <-changed:
		t.Error("one edit was noticed twice")
	case <-time.After(2 * settleTime):
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

package dev

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settleTime is how long files must lie still before they are read: editors write in several steps.
const settleTime = 200 * time.Millisecond

// watcher tells when manifests may have changed.
type watcher struct {
	notify *fsnotify.Watcher
	// Changed gets a value once files that changed lie still.
	changed chan struct{}
	log     *slog.Logger
}

// watch watches directories, and files by their directories: editors replace a file, and a watch on the file itself
// would stay with the old one.
func watch(log *slog.Logger, paths ...string) (*watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch the manifests: %w", err)
	}
	w := &watcher{notify: notify, changed: make(chan struct{}, 1), log: log}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			path = filepath.Dir(path)
		}
		if err := notify.Add(path); err != nil {
			_ = notify.Close()
			return nil, fmt.Errorf("watch %s: %w", path, err)
		}
	}
	return w, nil
}

// run passes changes on until ctx ends.
func (w *watcher) run(ctx context.Context) {
	defer func() { _ = w.notify.Close() }()
	still := time.NewTimer(0)
	if !still.Stop() {
		<-still.C
	}
	for {
		select {
		case <-ctx.Done():
			still.Stop()
			return
		case happened := <-w.notify.Events:
			if happened.Op != fsnotify.Chmod {
				still.Reset(settleTime)
			}
		case err := <-w.notify.Errors:
			// Events may be lost: look again.
			w.log.Warn("watching the manifests", "error", err)
			still.Reset(settleTime)
		case <-still.C:
			select {
			case w.changed <- struct{}{}:
			default:
			}
		}
	}
}

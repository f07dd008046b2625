// Package filelock holds a lock on a file that the kernel gives up when the process ends, however it ends: a killed
// process leaves no lock behind. The file names the process that holds it.
package filelock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// HeldError says that another process holds the lock.
type HeldError struct {
	// Path of the lock file; PID of the holder, 0 where the file does not say.
	Path string
	PID  int
}

func (h *HeldError) Error() string {
	if h.PID == 0 {
		return fmt.Sprintf("%s is locked by another process", h.Path)
	}
	return fmt.Sprintf("%s is locked by process %d", h.Path, h.PID)
}

// Lock is a held lock.
type Lock struct{ file *os.File }

// Acquire takes the lock on path, making the file and its directory if they are missing, and never waits. A lock that
// another process holds is a [HeldError].
func Acquire(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("lock file %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock file: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer func() { _ = file.Close() }()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &HeldError{Path: path, PID: holder(file)}
		}
		return nil, fmt.Errorf("lock file %s: %w", path, err)
	}
	lock := &Lock{file: file}
	if err := lock.sign(); err != nil {
		_ = lock.Release()
		return nil, fmt.Errorf("lock file %s: %w", path, err)
	}
	return lock, nil
}

// sign writes this process's id into the file.
func (l *Lock) sign() error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// Release gives the lock up. The file stays: removing it would let two processes hold locks on two files of one name.
func (l *Lock) Release() error { return l.file.Close() }

// holder reads the process id that the holder wrote, 0 if there is none.
func holder(file io.ReaderAt) int {
	text := make([]byte, 20)
	n, err := file.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil {
		return 0
	}
	return pid
}

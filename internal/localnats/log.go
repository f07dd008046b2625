package localnats

import (
	"fmt"
	"log/slog"
	"sync"
)

// logAdapter passes the server's log on, and keeps its last error and its first fatal one: an embedded server reports
// a failed start nowhere else.
type logAdapter struct {
	to *slog.Logger

	mu         sync.Mutex
	errorText  string
	firstFatal string
}

// Noticef logs at debug level: what a server says when all is well.
func (l *logAdapter) Noticef(format string, v ...any) {
	l.to.Debug("nats: " + fmt.Sprintf(format, v...))
}

// Warnf logs a warning.
func (l *logAdapter) Warnf(format string, v ...any) { l.to.Warn("nats: " + fmt.Sprintf(format, v...)) }

// Debugf is dropped.
func (l *logAdapter) Debugf(string, ...any) {}

// Tracef is dropped.
func (l *logAdapter) Tracef(string, ...any) {}

// Errorf logs an error, and keeps it for whoever asks why.
func (l *logAdapter) Errorf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.mu.Lock()
	l.errorText = text
	l.mu.Unlock()
	l.to.Error("nats: " + text)
}

// Fatalf is not logged: it becomes the error of Start.
func (l *logAdapter) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.firstFatal == "" {
		l.firstFatal = fmt.Sprintf(format, v...)
	}
}

func (l *logAdapter) lastError() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.errorText == "" {
		return "the server's log has no error"
	}
	return l.errorText
}

func (l *logAdapter) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.firstFatal
}

package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/term"
)

// Logger writes text to a terminal and JSON to anything else.
func Logger(out *os.File, level slog.Level) *slog.Logger {
	return newLogger(out, level, term.IsTerminal(int(out.Fd())))
}

func newLogger(out io.Writer, level slog.Level, terminal bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if terminal {
		return slog.New(slog.NewTextHandler(out, options))
	}
	return slog.New(slog.NewJSONHandler(out, options))
}

// ParseLevel reads debug, info, warn or error; empty is info.
func ParseLevel(text string) (slog.Level, error) {
	switch strings.ToLower(text) {
	case "debug":
		return slog.LevelDebug, nil
	case "", "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	default:
		return 0, fmt.Errorf("log level: found %q, allowed: debug, info, warn, error", text)
	}
}

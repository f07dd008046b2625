package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// progress shows how the orders fare: in place on a terminal, a line a second otherwise.
type progress struct {
	out        io.Writer
	onTerminal bool
	// width of the terminal in columns: a line in place may not wrap. 0: no bound.
	width   int
	started time.Time
	last    time.Time
	shown   string
}

func newProgress(out *os.File, now time.Time) *progress {
	p := &progress{out: out, onTerminal: term.IsTerminal(int(out.Fd())), started: now}
	if width, _, err := term.GetSize(int(out.Fd())); err == nil {
		p.width = width
	}
	return p
}

// interval is how often show is worth calling.
func (p *progress) interval() time.Duration {
	if p.onTerminal {
		return 100 * time.Millisecond
	}
	return time.Second
}

func (p *progress) show(t tally, now time.Time) {
	if now.Sub(p.last) < p.interval()-20*time.Millisecond {
		return
	}
	p.last = now
	p.write(line(t, now.Sub(p.started)))
}

// finish shows the last line, and leaves it standing.
func (p *progress) finish(t tally, now time.Time) {
	p.write(line(t, now.Sub(p.started)))
	if p.onTerminal {
		_, _ = fmt.Fprintln(p.out)
	}
}

func (p *progress) write(text string) {
	if !p.onTerminal {
		if text != p.shown {
			_, _ = fmt.Fprintln(p.out, text)
		}
		p.shown = text
		return
	}
	if runes := []rune(text); p.width > 0 && len(runes) >= p.width {
		text = string(runes[:p.width-1])
	}
	// Return to the start of the line and clear what a longer text left.
	_, _ = fmt.Fprint(p.out, "\r"+text+"\x1b[K")
}

func line(t tally, since time.Duration) string {
	cells := []struct {
		name  string
		value int
	}{
		{"committed", t.Committed}, {"published", t.Published}, {"succeeded", t.Succeeded},
		{"retrying", t.Retrying}, {"dead-lettered", t.DeadLettered},
	}
	parts := []string{fmt.Sprintf("%5.1f s", since.Seconds())}
	for _, cell := range cells {
		parts = append(parts, fmt.Sprintf("%s %3d", cell.name, cell.value))
	}
	return " " + strings.Join(parts, "  ")
}

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/relayops/relayops/hack/demo/erp"
	"github.com/relayops/relayops/hack/demo/orders"
)

func good() facts {
	return facts{
		report: orders.Report{Committed: 300, RolledBack: 15},
		tally: tally{
			Orders: 300, Committed: 300, Published: 300, Succeeded: 299, DeadLettered: 1, RetriedAndSucceeded: 40,
		},
		erp: erp.Stats{Requests: 350, Orders: 299, Errors500: 45, Repeats: 5, Unanswered: 5, Refused: 1},
	}
}

func TestASummaryThatAddsUpIsGood(t *testing.T) {
	text, ok := good().summary()
	if !ok || strings.Contains(text, "NOT") {
		t.Errorf("summary of a good run = %v:\n%s", ok, text)
	}
	if !strings.Contains(text, "300 of 300 committed events are accounted for, missing 0") {
		t.Errorf("summary lacks the account:\n%s", text)
	}
	for line := range strings.Lines(text) {
		if len(line) > 101 {
			t.Errorf("%d columns: %q", len(line)-1, line)
		}
	}
}

func TestEachBrokenPromiseMakesTheSummaryBad(t *testing.T) {
	for name, damage := range map[string]func(*facts){
		"an event is missing":                func(f *facts) { f.missing = 1 },
		"an execution has no end":            func(f *facts) { f.tally.Succeeded, f.erp.Orders = 298, 298 },
		"an order has no event":              func(f *facts) { f.tally.Orders = 301 },
		"the outbox lost a commit":           func(f *facts) { f.report.Committed = 301 },
		"a rolled back event was seen":       func(f *facts) { f.phantoms = 1 },
		"the ERP took an order twice":        func(f *facts) { f.erp.Doubles = 1 },
		"the ERP lacks an order":             func(f *facts) { f.erp.Orders = 298 },
		"the ERP has a stranger":             func(f *facts) { f.strangers = 1 },
		"the poisoned order was tried twice": func(f *facts) { f.erp.Refused = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			f := good()
			damage(&f)
			if text, ok := f.summary(); ok || !strings.Contains(text, "NOT") {
				t.Errorf("summary = %v:\n%s", ok, text)
			}
		})
	}
}

func TestProgressIsALineASecondWithoutATerminal(t *testing.T) {
	var b strings.Builder
	start := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	p := &progress{out: &b, started: start}
	for i := range 31 {
		p.show(tally{Committed: i}, start.Add(time.Duration(i)*100*time.Millisecond))
	}
	if got := strings.Count(b.String(), "\n"); got != 4 {
		t.Errorf("%d lines for 3 seconds, want 4:\n%s", got, b.String())
	}
	if strings.ContainsAny(b.String(), "\r\x1b") {
		t.Errorf("control characters without a terminal: %q", b.String())
	}
}

func TestProgressStaysInPlaceOnATerminal(t *testing.T) {
	var b strings.Builder
	start := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	p := &progress{out: &b, started: start, onTerminal: true}
	p.show(tally{Committed: 1}, start)
	p.show(tally{Committed: 2}, start.Add(time.Second))
	p.finish(tally{Committed: 3}, start.Add(2*time.Second))
	if got := strings.Count(b.String(), "\n"); got != 1 || strings.Count(b.String(), "\r") != 3 {
		t.Errorf("output = %q, want three texts in one line", b.String())
	}
	b.Reset()
	p.width = 40
	p.show(tally{Committed: 4}, start.Add(3*time.Second))
	if got := strings.TrimSuffix(strings.TrimPrefix(b.String(), "\r"), "\x1b[K"); len(got) >= 40 {
		t.Errorf("%d columns on a terminal of 40: %q", len(got), got)
	}
}

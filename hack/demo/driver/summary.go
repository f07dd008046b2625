package main

import (
	"fmt"
	"strings"

	"github.com/relayops/relayops/hack/demo/erp"
	"github.com/relayops/relayops/hack/demo/orders"
)

// facts are what the three sides say at the end: the application, RelayOps' tables, and the ERP.
type facts struct {
	report orders.Report
	tally  tally
	erp    erp.Stats
	// missing are committed events without an end, phantoms traces of events that were never committed, strangers
	// orders at the ERP that the application does not have.
	missing, phantoms, strangers int
}

// check is one thing that has to be so.
type check struct {
	text string
	ok   bool
}

func (f facts) checks() []check {
	return []check{
		{fmt.Sprintf("%d of %d committed events are accounted for, missing %d",
			f.tally.Committed-f.missing, f.tally.Committed, f.missing), f.missing == 0},
		{fmt.Sprintf("%d committed = %d succeeded + %d dead-lettered + %d cancelled", f.tally.Committed, f.tally.Succeeded,
			f.tally.DeadLettered, f.tally.Cancelled), f.tally.Committed == f.tally.settled()},
		{fmt.Sprintf("the application committed %d orders, the outbox has %d events of them",
			f.report.Committed, f.tally.Committed),
			f.report.Committed == f.tally.Committed && f.tally.Committed == f.tally.Orders},
		{fmt.Sprintf("%d transactions rolled back, and %d of their events were seen anywhere",
			f.report.RolledBack, f.phantoms), f.phantoms == 0},
		{fmt.Sprintf("the ERP took %d distinct orders = %d succeeded; %d of them twice, %d that nobody committed",
			f.erp.Orders, f.tally.Succeeded, f.erp.Doubles, f.strangers),
			f.erp.Orders == f.tally.Succeeded && f.erp.Doubles == 0 && f.strangers == 0},
		{fmt.Sprintf("%d poisoned order is in the dead letters, after %d request", f.tally.DeadLettered, f.erp.Refused),
			f.tally.DeadLettered == 1 && f.erp.Refused == 1},
	}
}

// summary is the text at the end, and whether everything is accounted for.
func (f facts) summary() (text string, ok bool) {
	var b strings.Builder
	row := func(name string, value int, note string) {
		b.WriteString(strings.TrimRight(fmt.Sprintf("  %-22s %5d   %s", name, value, note), " ") + "\n")
	}
	row("committed", f.tally.Committed, fmt.Sprintf("orders with their events; %d more rolled back", f.report.RolledBack))
	row("published", f.tally.Published, "to the JetStream stream RELAYOPS")
	row("succeeded", f.tally.Succeeded, fmt.Sprintf("%d of them after a retry", f.tally.RetriedAndSucceeded))
	row("dead-lettered", f.tally.DeadLettered, "the poisoned order")
	row("ERP requests", f.erp.Requests, fmt.Sprintf("= %d orders taken + %d answered 500 + %d refused + %d repeats",
		f.erp.Orders, f.erp.Errors500, f.erp.Refused, f.erp.Repeats))
	row("  never answered", f.erp.Unanswered, "taken all the same; the repeats had the same Idempotency-Key")
	b.WriteString("\n")
	ok = true
	for _, one := range f.checks() {
		mark := "ok  "
		if !one.ok {
			mark, ok = "NOT ", false
		}
		b.WriteString("  " + mark + " " + one.text + "\n")
	}
	return b.String(), ok
}

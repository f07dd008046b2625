package dev

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/relayops/relayops/internal/manifest"
	"github.com/relayops/relayops/internal/resolve"
	"github.com/relayops/relayops/internal/runspec"
)

// Desired is what manifests ask to run.
type Desired struct {
	Relays  []runspec.Relay
	Workers []runspec.Worker
	// Notes say what was skipped.
	Notes []manifest.Note
}

// Load reads manifests, with the connections that dev mode has. Problems are all mistakes of all files.
func Load(mounts resolve.Mounts, paths ...string) (Desired, manifest.Problems) {
	set, relays, workers, problems := resolve.Load(mounts, paths...)
	if len(problems) == 0 && len(relays) == 0 {
		problems = append(problems, manifest.Problem{
			File: strings.Join(paths, ", "), Found: "no OutboxRelay", Allowed: "at least one, and a Pipeline or more",
		})
	}
	return Desired{Relays: relays, Workers: workers, Notes: set.Notes}, problems
}

// Tables are the relays' outbox tables, by relay key.
func (d Desired) Tables() map[string]runspec.Table {
	tables := make(map[string]runspec.Table, len(d.Relays))
	for _, relay := range d.Relays {
		tables[relay.Key] = relay.Table
	}
	return tables
}

// String counts what is desired, such as "1 relay, 2 pipelines".
func (d Desired) String() string {
	return count(len(d.Relays), "relay") + ", " + count(len(d.Workers), "pipeline")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// slotKey names a relay or a worker: both kinds have keys of one form.
type slotKey struct{ kind, key string }

func (s slotKey) String() string { return s.kind + " " + s.key }

const (
	kindRelay    = "relay"
	kindPipeline = "pipeline"
)

// wanted is one specification, and a text by which two of them are compared.
type wanted struct {
	relay  *runspec.Relay
	worker *runspec.Worker
	text   string
}

func (d Desired) slots() (map[slotKey]wanted, error) {
	slots := make(map[slotKey]wanted, len(d.Relays)+len(d.Workers))
	for _, relay := range d.Relays {
		text, err := json.Marshal(relay)
		if err != nil {
			return nil, fmt.Errorf("relay %s: %w", relay.Key, err)
		}
		slots[slotKey{kindRelay, relay.Key}] = wanted{relay: &relay, text: string(text)}
	}
	for _, worker := range d.Workers {
		text, err := json.Marshal(worker)
		if err != nil {
			return nil, fmt.Errorf("pipeline %s: %w", worker.PipelineKey, err)
		}
		slots[slotKey{kindPipeline, worker.PipelineKey}] = wanted{worker: &worker, text: string(text)}
	}
	return slots, nil
}

// change is what became of one slot between two desires.
type change struct {
	slot slotKey
	// what is "added", "changed" or "removed".
	what string
	// from and to are the revisions of a changed pipeline, equal when only its settings changed.
	from, to string
}

func (c change) String() string {
	text := c.what + " " + c.slot.String()
	if c.from != c.to {
		text += ": revision " + c.from + " → " + c.to
	}
	return text
}

// changes compares two desires; the result is sorted.
func changes(before, after map[slotKey]wanted) []change {
	var all []change
	for key, want := range after {
		had, existed := before[key]
		switch {
		case !existed:
			all = append(all, change{slot: key, what: "added"})
		case had.text != want.text:
			all = append(all, change{slot: key, what: "changed", from: had.revision(), to: want.revision()})
		}
	}
	for key := range before {
		if _, stays := after[key]; !stays {
			all = append(all, change{slot: key, what: "removed"})
		}
	}
	slices.SortFunc(all, func(a, b change) int { return strings.Compare(a.slot.String(), b.slot.String()) })
	return all
}

func (w wanted) revision() string {
	if w.worker == nil {
		return ""
	}
	return w.worker.Revision
}

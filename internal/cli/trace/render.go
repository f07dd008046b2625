package trace

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/relayops/relayops/internal/cli/duration"
	"github.com/relayops/relayops/internal/engine"
	read "github.com/relayops/relayops/internal/trace"
)

// timeLayout shows moments in UTC, as the logs do.
const timeLayout = "2006-01-02 15:04:05.000Z"

// maxNodeWidth keeps a step's line within 100 columns; -o json has the whole id.
const maxNodeWidth = 20

// Render writes a story as one screen of text. now is what waits are counted from.
func Render(w io.Writer, story read.Story, now time.Time) error {
	r := renderer{now: now, origin: origin(story)}
	r.event(story.Event)
	r.publication(story)
	if len(story.Executions) == 0 && len(story.DeadLetters) == 0 {
		r.line("")
		r.line("No pipeline has an execution of it%s.", r.whyNone(story))
	}
	for _, execution := range story.Executions {
		r.execution(execution)
	}
	for _, letter := range story.DeadLetters {
		r.line("")
		r.line("%s   dead letter without an execution", letter.PipelineKey)
		r.deadLetter(letter)
	}
	_, err := io.WriteString(w, r.text.String())
	return err
}

// renderer collects the lines.
type renderer struct {
	text strings.Builder
	now  time.Time
	// origin is what the steps' offsets are counted from.
	origin time.Time
}

// origin is the commit, or the first thing that is known to have happened.
func origin(story read.Story) time.Time {
	switch {
	case story.Event.CommittedAt != nil:
		return *story.Event.CommittedAt
	case len(story.Executions) > 0:
		return story.Executions[0].CreatedAt
	default:
		return time.Time{}
	}
}

func (r *renderer) line(format string, args ...any) {
	r.text.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

func (r *renderer) fact(name, format string, args ...any) {
	r.line("  %-12s %s", name, fmt.Sprintf(format, args...))
}

func (r *renderer) event(e read.Event) {
	version := ""
	if e.Version > 1 {
		version = fmt.Sprintf(" (version %d)", e.Version)
	}
	r.line("%s%s %s of org %s", orUnknown(e.Type), version, e.ID, e.OrgID)
	if e.AggregateType != "" || e.AggregateID != "" {
		r.fact("aggregate", "%s %s", e.AggregateType, e.AggregateID)
	}
	for _, fact := range []struct{ name, value string }{
		{"correlation", e.CorrelationID}, {"caused by", e.CausationID}, {"trace", e.TraceID()},
	} {
		if fact.value != "" {
			r.fact(fact.name, "%s", fact.value)
		}
	}
	if e.OccurredAt != nil {
		r.fact("occurred", "%s", e.OccurredAt.UTC().Format(timeLayout))
	}
	if e.CommittedAt != nil {
		r.fact("committed", "%s", e.CommittedAt.UTC().Format(timeLayout))
	}
}

func orUnknown(eventType string) string {
	if eventType == "" {
		return "Event of unknown type"
	}
	return eventType
}

func (r *renderer) publication(story read.Story) {
	p := story.Publication
	if p == nil {
		r.fact("published", "the outbox has no row of it (any more)")
		return
	}
	failures := ""
	if p.FailedAttempts > 0 {
		failures = fmt.Sprintf("%s failed first", plural(int(p.FailedAttempts), "publish", "publishes"))
		if p.LastError != "" {
			failures += " (" + p.LastError + ")"
		}
	}
	switch p.Status {
	case "PUBLISHED":
		where := fmt.Sprintf("%s sequence %d", p.Stream, p.StreamSeq)
		if p.Lag != nil {
			where = "+" + duration.Short(p.Lag.Std()) + "  " + where
		}
		r.fact("published", "%s", joined(where, failures))
	case "FAILED":
		r.fact("published", "%s", joined("FAILED: it waits for a reprocess", failures))
	default:
		waits := "not yet: " + p.Status
		if p.AvailableAt != nil && p.AvailableAt.After(r.now) {
			waits += ", due in " + duration.Short(p.AvailableAt.Sub(r.now))
		}
		r.fact("published", "%s", joined(waits, failures))
	}
}

func (r *renderer) whyNone(story read.Story) string {
	switch p := story.Publication; {
	case p == nil || p.Status == "FAILED":
		return ""
	case p.Status == "PUBLISHED":
		return ": none is subscribed to it, or none has claimed it yet"
	default:
		return " yet: it is not published"
	}
}

func (r *renderer) execution(e read.Execution) {
	r.line("")
	title := fmt.Sprintf("%s   %s", e.PipelineKey, e.State)
	if e.OperationVersion > 1 {
		title += fmt.Sprintf("   reprocess, version %d", e.OperationVersion)
	}
	r.line("%s", title)
	r.fact("execution", "%s, revision %s", e.ID, shortRevision(e.Revision))
	r.fact("executed", "%s", r.timing(e))
	for i, attempt := range e.Attempts {
		r.attempt(attempt, e.State == "RUNNING" && i == len(e.Attempts)-1)
	}
	if e.State == "RETRY" && e.DueAt != nil {
		r.line("    %s", r.due(e))
	}
	for _, tag := range e.Tags {
		r.fact("tag", "%s: %s, %q", tag.Phase, tag.Tag, tag.Name)
	}
	for _, child := range e.Emitted {
		status := child.Status
		if status == "" {
			status = "no outbox row any more"
		}
		r.fact("emitted", "%s %s by %s: %s", child.EventType, child.EventID, child.NodeID, status)
	}
	if e.DeadLetter != nil {
		r.deadLetter(*e.DeadLetter)
	}
}

func (r *renderer) timing(e read.Execution) string {
	text := fmt.Sprintf("%s, %s", plural(int(e.Attempt), "attempt", "attempts"),
		duration.Short(e.Executing.Std())+" in all")
	if e.FinishedAt != nil && !r.origin.IsZero() {
		text += fmt.Sprintf(", ended %s after the commit", duration.Short(e.FinishedAt.Sub(r.origin)))
	}
	if e.State == "RUNNING" && e.LeaseUntil != nil {
		text += fmt.Sprintf(", leased by %s until %s", e.LeaseOwner, e.LeaseUntil.UTC().Format(timeLayout))
	}
	return text
}

func (r *renderer) due(e read.Execution) string {
	wait := e.DueAt.Sub(r.now)
	if wait <= 0 {
		return "due now: a worker claims it next"
	}
	return fmt.Sprintf("due in %s", duration.Short(wait))
}

func (r *renderer) attempt(a read.Attempt, running bool) {
	switch {
	case running:
		r.line("  attempt %-4d is running", a.Number)
	case len(a.Steps) == 0:
		r.line("  attempt %-4d no step was recorded", a.Number)
	default:
		r.line("  attempt %d", a.Number)
	}
	nodes, types := 0, 0
	for _, step := range a.Steps {
		nodes, types = max(nodes, len([]rune(shortNode(step.NodeID)))), max(types, len(step.NodeType))
	}
	for _, step := range a.Steps {
		r.line("    %9s  %-*s  %-*s  %-11s %8s  %s", "+"+duration.Short(step.StartedAt.Sub(r.origin)),
			nodes, shortNode(step.NodeID), types, step.NodeType, step.Outcome, duration.Short(step.Duration.Std()), why(step))
	}
	if a.BackOff != nil {
		r.line("    back-off %s", duration.Short(a.BackOff.Std()))
	}
}

// why says what a step's outcome came from.
func why(step read.Step) string {
	var parts []string
	if step.Code != "" && step.Code != string(engine.CodeHTTPStatus) {
		parts = append(parts, step.Code)
	}
	if step.HTTPStatus != 0 {
		parts = append(parts, fmt.Sprintf("HTTP %d", step.HTTPStatus))
	}
	if step.Branch != "" && step.Branch != "success" {
		parts = append(parts, "→ "+step.Branch)
	}
	return strings.Join(parts, " ")
}

func (r *renderer) deadLetter(d read.DeadLetter) {
	reason := d.Code
	if d.NodeID != "" {
		reason += " at node " + d.NodeID
	}
	if d.HTTPStatus != 0 {
		reason += fmt.Sprintf(", HTTP %d", d.HTTPStatus)
	}
	if d.Attempt != 0 {
		reason += fmt.Sprintf(", attempt %d", d.Attempt)
	}
	r.fact("dead letter", "%s", reason)
	r.fact("", "%s, %s", d.ID, d.CreatedAt.UTC().Format(timeLayout))
}

func shortNode(id string) string {
	if runes := []rune(id); len(runes) > maxNodeWidth {
		return string(runes[:maxNodeWidth-1]) + "…"
	}
	return id
}

func shortRevision(revision string) string { return revision[:min(len(revision), 12)] }

func joined(first, second string) string {
	if second == "" {
		return first
	}
	return first + "; " + second
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

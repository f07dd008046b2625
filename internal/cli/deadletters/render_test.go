package deadletters_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/relayops/relayops/internal/cli/deadletters"
	"github.com/relayops/relayops/internal/trace"
)

var (
	now = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	id  = uuid.MustParse("0198c5a0-0000-7000-8000-000000000001")
)

func TestATableOfDeadLettersFitsAScreen(t *testing.T) {
	var b strings.Builder
	err := deadletters.Render(&b, []trace.DeadLetter{{
		ID: id, OrgID: strings.Repeat("organisation", 4), PipelineKey: strings.Repeat("n", 63) + "/order-post",
		Code: "expression_cost_exceeded", NodeID: strings.Repeat("node", 15), CreatedAt: now.Add(-time.Minute),
	}}, 1, now)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	for _, part := range []string{id.String(), "expression_cost_exceeded", "1m00s", "--limit"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("table lacks %q:\n%s", part, b.String())
		}
	}
}

func TestOneDeadLetterShowsItsFactsAndItsEvent(t *testing.T) {
	letter := trace.DeadLetter{
		ID: id, OrgID: "acme", PipelineKey: "dev/default/order-post", Code: "permanent_error", NodeID: "notify",
		HTTPStatus: 422, Attempt: 1, CreatedAt: now,
	}
	story := &trace.Story{Event: trace.Event{ID: id, OrgID: "acme", Type: "OrderConfirmed"}}
	for _, test := range []struct {
		name  string
		story *trace.Story
		want  string
	}{
		{"known event", story, "OrderConfirmed " + id.String()},
		{"no event", nil, "could not be decoded, or is not kept"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b strings.Builder
			if err := deadletters.RenderOne(&b, letter, test.story, now); err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"permanent_error", "notify", "422", "acme", test.want} {
				if !strings.Contains(b.String(), part) {
					t.Errorf("text lacks %q:\n%s", part, b.String())
				}
			}
		})
	}
}

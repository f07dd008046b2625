package executions_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/relayops/relayops/internal/cli/executions"
	"github.com/relayops/relayops/internal/trace"
)

var now = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)

func TestATableOfExecutionsFitsAScreen(t *testing.T) {
	id := uuid.MustParse("0198c5a0-0000-7000-8000-000000000001")
	got := render(t, []trace.Execution{{
		EventID: id, OrgID: strings.Repeat("organisation", 4), PipelineKey: "production/" + strings.Repeat("n", 63) + "/order-post",
		State: "DEAD_LETTERED", Attempt: 12, CreatedAt: now.Add(-26 * time.Hour),
	}}, 50)
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > 100 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	for _, part := range []string{id.String(), "/order-post", "DEAD_LETTERED", "12", "1d02h"} {
		if !strings.Contains(lines[1], part) {
			t.Errorf("row %q lacks %q", lines[1], part)
		}
	}
}

func TestAFullPageSaysThatThereMayBeMore(t *testing.T) {
	one := []trace.Execution{{CreatedAt: now}}
	if got := render(t, one, 1); !strings.Contains(got, "--limit") {
		t.Errorf("a full page does not name --limit:\n%s", got)
	}
	if got := render(t, one, 2); strings.Contains(got, "--limit") {
		t.Errorf("a page with room names --limit:\n%s", got)
	}
	if got := render(t, nil, 2); got != "No executions.\n" {
		t.Errorf("an empty list = %q", got)
	}
}

func render(t *testing.T, list []trace.Execution, limit int) string {
	t.Helper()
	var b strings.Builder
	if err := executions.Render(&b, list, limit, now); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

package table_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/relayops/relayops/internal/cli/table"
)

func TestColumnsLineUp(t *testing.T) {
	got := write(t, []table.Column{{Title: "A"}, {Title: "LONG"}}, [][]string{{"é", "x"}, {"abc", ""}})
	want := "A    LONG\né    x\nabc\n"
	if got != want {
		t.Errorf("table:\n%s\nwant:\n%s", got, want)
	}
}

func TestAWideTableIsCutWhereItMayBe(t *testing.T) {
	id := strings.Repeat("i", 36)
	columns := []table.Column{{Title: "ID"}, {Title: "ORG", Shrink: table.End}, {Title: "KEY", Shrink: table.Start}}
	got := write(t, columns, [][]string{{id, strings.Repeat("o", 60), "dev/" + strings.Repeat("k", 90) + "/end"}})
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > table.Width {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	row := strings.Fields(lines[1])
	if row[0] != id {
		t.Errorf("id = %q, want it whole", row[0])
	}
	if !strings.HasPrefix(row[1], "oo") || !strings.HasSuffix(row[1], "…") {
		t.Errorf("org = %q, want its start", row[1])
	}
	if !strings.HasPrefix(row[2], "…") || !strings.HasSuffix(row[2], "/end") {
		t.Errorf("key = %q, want its end", row[2])
	}
}

func TestFixedColumnsMayBreakTheLimit(t *testing.T) {
	long := strings.Repeat("x", 120)
	if got := write(t, []table.Column{{Title: "A"}}, [][]string{{long}}); !strings.Contains(got, long) {
		t.Errorf("table = %q, want the id whole", got)
	}
}

func write(t *testing.T, columns []table.Column, rows [][]string) string {
	t.Helper()
	var b strings.Builder
	if err := table.Write(&b, columns, rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

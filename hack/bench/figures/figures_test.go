package figures_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/relayops/relayops/hack/bench/figures"
)

func TestSeriesSummary(t *testing.T) {
	for _, c := range []struct {
		series           figures.Series
		median, min, max float64
	}{
		{nil, 0, 0, 0},
		{figures.Series{3}, 3, 3, 3},
		{figures.Series{9, 1, 5}, 5, 1, 9},
		{figures.Series{4, 1, 3, 2}, 2.5, 1, 4},
	} {
		if m, lo, hi := c.series.Median(), c.series.Min(), c.series.Max(); m != c.median || lo != c.min || hi != c.max {
			t.Errorf("%v: found median %v, min %v, max %v, want %v, %v, %v", c.series, m, lo, hi, c.median, c.min, c.max)
		}
	}
}

func TestMedianLeavesTheRoundsInTheirOrder(t *testing.T) {
	series := figures.Series{9, 1, 5}
	series.Median()
	if series[0] != 9 || series[2] != 5 {
		t.Errorf("found %v, want the order of the rounds", series)
	}
}

func TestQuantileIsNearestRank(t *testing.T) {
	values := make([]float64, 100)
	for i := range values {
		values[99-i] = float64(i + 1)
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 50, 0.99: 99, 1: 100} {
		if got := figures.Quantile(values, q); got != want {
			t.Errorf("quantile %v: found %v, want %v", q, got, want)
		}
	}
	if got := figures.Quantile(nil, 0.5); got != 0 {
		t.Errorf("quantile of nothing: found %v, want 0", got)
	}
}

func TestRatiosPairTheRounds(t *testing.T) {
	got := figures.Ratios(figures.Series{8, 20, 7}, figures.Series{10, 10, 0, 5})
	if len(got) != 3 || got[0] != 0.8 || got[1] != 2 || got[2] != 0 {
		t.Errorf("found %v, want [0.8 2 0]", got)
	}
}

func TestReportPrintsNameValueUnitAndJudgesBars(t *testing.T) {
	var lines, document strings.Builder
	report := figures.NewReport(&lines)
	report.Add("drain/relay", 31234.4, "events/s", nil)
	report.Add("drain/ratio", 0.79, "ratio", figures.AtLeast(0.8))
	report.Add("memory/relay", 40, "MiB", figures.AtMost(64))
	want := "drain/relay 31234 events/s\n" +
		"drain/ratio 0.790 ratio  # bar >= 0.800: MISSED\n" +
		"memory/relay 40.00 MiB  # bar <= 64.00: met\n"
	if lines.String() != want {
		t.Errorf("found\n%swant\n%s", lines.String(), want)
	}
	if missed := report.Missed(); len(missed) != 1 || missed[0].Name != "drain/ratio" {
		t.Errorf("missed: found %v, want drain/ratio", missed)
	}
	if err := report.WriteJSON(&document); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Figures []struct {
			Name string
			Bar  *struct{ Met bool }
		}
	}
	if err := json.Unmarshal([]byte(document.String()), &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Figures) != 3 || read.Figures[1].Bar == nil || read.Figures[1].Bar.Met || read.Figures[0].Bar != nil {
		t.Errorf("JSON: found %+v", read.Figures)
	}
}

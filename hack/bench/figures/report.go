package figures

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Line is one figure of a run.
type Line struct {
	// Name is a path such as relay-drain/relay/median.
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	// Unit is one word, such as events/s, ms, MiB, ratio.
	Unit string `json:"unit"`
	// Bar is what the value has to meet, if anything.
	Bar *Bar `json:"bar,omitempty"`
}

// Bar is the limit of a figure.
type Bar struct {
	// AtLeast or AtMost is set.
	AtLeast *float64 `json:"atLeast,omitempty"`
	AtMost  *float64 `json:"atMost,omitempty"`
	Met     bool     `json:"met"`
}

// AtLeast is a bar that a value meets from below.
func AtLeast(limit float64) *Bar { return &Bar{AtLeast: &limit} }

// AtMost is a bar that a value meets from above.
func AtMost(limit float64) *Bar { return &Bar{AtMost: &limit} }

func (b *Bar) judge(value float64) {
	b.Met = (b.AtLeast == nil || value >= *b.AtLeast) && (b.AtMost == nil || value <= *b.AtMost)
}

func (b *Bar) String() string {
	sign, limit := ">=", b.AtLeast
	if limit == nil {
		sign, limit = "<=", b.AtMost
	}
	verdict := "met"
	if !b.Met {
		verdict = "MISSED"
	}
	return fmt.Sprintf("%s %s: %s", sign, number(*limit), verdict)
}

// Report collects the figures of one run and prints each as soon as it is there.
type Report struct {
	Command  string    `json:"command"`
	Machine  Machine   `json:"machine"`
	Began    time.Time `json:"began"`
	Seconds  float64   `json:"seconds"`
	Quick    bool      `json:"quick"`
	Lines    []Line    `json:"figures"`
	live     io.Writer
	liveFail error
}

// NewReport writes each figure as a line "name value unit" to live, followed by the bar and its verdict where there is
// one. Live may be io.Discard.
func NewReport(live io.Writer) *Report { return &Report{live: live} }

// Add takes one figure; bar may be nil.
func (r *Report) Add(name string, value float64, unit string, bar *Bar) {
	line := Line{Name: name, Value: value, Unit: unit, Bar: bar}
	suffix := ""
	if bar != nil {
		bar.judge(value)
		suffix = "  # bar " + bar.String()
	}
	r.Lines = append(r.Lines, line)
	if _, err := fmt.Fprintf(r.live, "%s %s %s%s\n", name, number(value), unit, suffix); err != nil && r.liveFail == nil {
		r.liveFail = err
	}
}

// AddSeries takes a figure measured in several rounds: its median, minimum and maximum. The bar is the median's.
func (r *Report) AddSeries(name string, series Series, unit string, bar *Bar) {
	r.Add(name+"/median", series.Median(), unit, bar)
	r.Add(name+"/min", series.Min(), unit, nil)
	r.Add(name+"/max", series.Max(), unit, nil)
}

// Missed gives the figures that do not meet their bar.
func (r *Report) Missed() []Line {
	var missed []Line
	for _, line := range r.Lines {
		if line.Bar != nil && !line.Bar.Met {
			missed = append(missed, line)
		}
	}
	return missed
}

// WriteJSON writes the whole report.
func (r *Report) WriteJSON(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// Err is the first error of writing a line.
func (r *Report) Err() error { return r.liveFail }

// number prints four significant digits, and large values whole.
func number(value float64) string {
	switch magnitude := max(value, -value); {
	case magnitude >= 1000:
		return strconv.FormatFloat(value, 'f', 0, 64)
	case magnitude >= 100:
		return strconv.FormatFloat(value, 'f', 1, 64)
	case magnitude >= 10:
		return strconv.FormatFloat(value, 'f', 2, 64)
	default:
		return strconv.FormatFloat(value, 'f', 3, 64)
	}
}

package duration_test

import (
	"testing"
	"time"

	"github.com/relayops/relayops/internal/cli/duration"
)

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                       "0.0 ms",
		420 * time.Microsecond:  "0.4 ms",
		14 * time.Millisecond:   "14 ms",
		1250 * time.Millisecond: "1.25 s",
		130 * time.Second:       "2m10s",
		185 * time.Minute:       "3h05m",
		98 * time.Hour:          "4d02h",
		-2 * time.Second:        "-2.00 s",
	} {
		if got := duration.Short(d); got != want {
			t.Errorf("Short(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestAge(t *testing.T) {
	now := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		-time.Second: "0s", 3900 * time.Millisecond: "3s", 130 * time.Second: "2m10s",
	} {
		if got := duration.Age(now, now.Add(-ago)); got != want {
			t.Errorf("Age of %s = %q, want %q", ago, got, want)
		}
	}
}

// Package duration writes durations and ages as people read them.
package duration

import (
	"fmt"
	"time"
)

// Short is a duration with three significant digits or so: "0.4 ms", "14 ms", "1.25 s", "2m10s", "3h05m", "4d02h".
func Short(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Short(-d)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	}
}

// Age is how long ago a moment was, in whole units: "3s", "2m10s", "3h05m", "4d02h". A moment in the future is "0s".
func Age(now, then time.Time) string {
	age := max(0, now.Sub(then))
	if age < time.Minute {
		return fmt.Sprintf("%ds", age/time.Second)
	}
	return Short(age)
}

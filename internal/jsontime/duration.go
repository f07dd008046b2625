// Package jsontime holds the JSON form of times and durations that the run specifications and pipelines share.
package jsontime

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a time.Duration that is written as Go writes it, such as "2s" or "1m30s".
type Duration time.Duration

// Std is the duration as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf("duration: found %s, allowed: a string such as \"2s\"", raw)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("duration: found %q, allowed: a number with a unit, such as \"2s\"", text)
	}
	*d = Duration(parsed)
	return nil
}

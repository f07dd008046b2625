package event

import (
	"strings"
	"testing"
)

func TestJSONBTextRefusesWhatJSONBCannotHold(t *testing.T) {
	for name, document := range map[string]string{
		"a NUL character":           `"a\u0000"`,
		"a NUL in a member's name":  `{"\u0000":1}`,
		"a high surrogate alone":    `"\ud800"`,
		"a high one before text":    `"\ud800x"`,
		"two high ones":             `"\ud800\ud800"`,
		"a low surrogate alone":     `["\uDC00"]`,
		"too many digits":           "[1e131072]",
		"too many of them written":  strings.Repeat("9", 131073),
		"too many after the point":  "1e-16384",
		"zero with too many":        "0e-16384",
		"an exponent beyond any":    "1e99999999999999999999",
		"depth 1001":                strings.Repeat("[", 1001) + strings.Repeat("]", 1001),
		"depth 1001 of both kinds":  strings.Repeat(`[{"a":`, 501) + "1" + strings.Repeat("}]", 501),
		"a negative exponent below": "-5E-1000000000000",
	} {
		if _, problem := jsonbText([]byte(document)); problem == "" {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestJSONBTextAcceptsTheLastAllowed(t *testing.T) {
	for document, want := range map[string]int{
		`"\\u0000"`:      9,
		`"\ud83d\ude00"`: 6,
		"1e131071":       131072,
		"1e-16383":       16385,
		"0e400000":       1,
		"-0":             1,
		"-0.0":           3,
		strings.Repeat("[", 1000) + strings.Repeat("]", 1000): 2000,
	} {
		size, problem := jsonbText([]byte(document))
		if problem != "" || size != want {
			t.Errorf("%.20s: found %d %q, want %d", document, size, problem, want)
		}
	}
}

package engine

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	maxQuoted = 64
	maxListed = 40
)

// clip bounds a text that a user wrote, for a message.
func clip(text string) string {
	if len(text) <= maxQuoted {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	cut := maxQuoted
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strings.ToValidUTF8(text[:cut], "\uFFFD") + "…"
}

func quote(text string) string { return fmt.Sprintf("%q", clip(text)) }

// list names what is allowed, at most maxListed of it.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	rest := ""
	if len(names) > maxListed {
		rest = fmt.Sprintf(" and %d more", len(names)-maxListed)
		names = names[:maxListed]
	}
	clipped := make([]string, len(names))
	for i, name := range names {
		clipped[i] = clip(name)
	}
	return strings.Join(clipped, ", ") + rest
}

// didYouMean suggests the name nearest to what was found, if one is near.
func didYouMean(found string, names []string) string {
	if len(found) > maxQuoted {
		return ""
	}
	best, distance := "", min(3, len(found)/2+1)
	for _, name := range names {
		if d := editDistance(strings.ToLower(found), strings.ToLower(clip(name))); d < distance {
			best, distance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// editDistance is Levenshtein's, by bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

package manifest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxPhraseBytes bounds what a problem repeats of the input, in bytes.
const maxPhraseBytes = 160

// clip bounds a text that comes from the input, and keeps it on one line.
func clip(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\ufffd")), " ")
	if len(text) <= maxPhraseBytes {
		return text
	}
	cut := maxPhraseBytes
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// userinfo is where a URL holds credentials: they are not repeated.
var userinfo = regexp.MustCompile(`://[^\s"]*@`)

func quote(text string) string {
	return clip(fmt.Sprintf("%q", userinfo.ReplaceAllString(text, "://…@")))
}

// describe is a value as a problem shows it: a short one as JSON, a longer one by its shape.
func describe(value any) string {
	switch value := value.(type) {
	case nil:
		return "nothing"
	case string:
		return quote(value)
	case map[string]any, []any:
		return shape(value)
	default:
		text, err := json.Marshal(value)
		if err != nil {
			return shape(value)
		}
		return clip(string(text))
	}
}

// shape is the kind of a value, and its size.
func shape(value any) string {
	switch value := value.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		return "an object"
	case []any:
		return fmt.Sprintf("a list of %d", len(value))
	case string:
		return "a string"
	case bool:
		return "a boolean"
	default:
		return "a number"
	}
}

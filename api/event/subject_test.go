package event_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/relayops/relayops/api/event"
)

func TestEscapedTokenIsOneTokenAndComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(anyText(1, 64), rapid.StringN(1, 32, -1)).Draw(t, "text")
		token := event.EscapeToken(text)
		if strings.ContainsAny(token, ".*> \t\r\n\x00") {
			t.Fatalf("%q became %q, which is more than one token or a wildcard", text, token)
		}
		back, err := event.UnescapeToken(token)
		if err != nil || back != text {
			t.Fatalf("%q became %q, and came back as %q, %v", text, token, back, err)
		}
	})
}

func TestTwoTextsNeverShareASubject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("aA%2E.*é ")), 1, 6, -1)
		orgA, orgB := text.Draw(t, "orgA"), text.Draw(t, "orgB")
		typeA, typeB := text.Draw(t, "typeA"), text.Draw(t, "typeB")
		same := orgA == orgB && typeA == typeB
		if (event.Subject("events", orgA, typeA) == event.Subject("events", orgB, typeB)) != same {
			t.Fatalf("(%q, %q) and (%q, %q) share %s", orgA, typeA, orgB, typeB, event.Subject("events", orgA, typeA))
		}
	})
}

func TestSubject(t *testing.T) {
	for _, c := range []struct{ org, eventType, want string }{
		{"acme", "OrderConfirmed", "events.acme.OrderConfirmed"},
		{"a.b", "invoice.paid", "events.a%2Eb.invoice%2Epaid"},
		{"*", ">", "events.%2A.%3E"},
		{"north/east 1", "A", "events.north%2Feast%201.A"},
		{"café", "A", "events.caf%C3%A9.A"},
	} {
		if got := event.Subject("events", c.org, c.eventType); got != c.want {
			t.Errorf("Subject(%q, %q) = %s, want %s", c.org, c.eventType, got, c.want)
		}
	}
	if got := event.FilterSubject("events", "", "a.b"); got != "events.*.a%2Eb" {
		t.Errorf("filter for all orgs: %s", got)
	}
	if got := event.FilterSubject("events", "*", "a"); got != "events.%2A.a" {
		t.Errorf("filter for the org named *: %s", got)
	}
}

func TestUnescapeRefusesWhatEscapeDoesNotMake(t *testing.T) {
	for _, token := range []string{"", ".", "a.b", "*", "%", "%2", "a%2", "%2e", "%GG", "%41", "%5F", " ", "é"} {
		if text, err := event.UnescapeToken(token); err == nil {
			t.Errorf("%q was accepted as %q", token, text)
		}
	}
}

func FuzzUnescapeToken(f *testing.F) {
	for _, seed := range []string{"acme", "a%2Eb", "%2", "%41", "%FF%00", "a b", "%C3%A9"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		text, err := event.UnescapeToken(token)
		if err != nil {
			return
		}
		if again := event.EscapeToken(text); again != token {
			t.Fatalf("%q was read as %q, which is written %q: two subjects for one name", token, text, again)
		}
	})
}

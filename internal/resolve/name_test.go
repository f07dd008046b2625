package resolve_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/resolve"
)

func TestConsumer(t *testing.T) {
	for key, want := range map[string]string{
		"default/shop/order-post": "default_shop_order-post",
		"eu-1/shop/a.b":           "eu-1_shop_a=2Eb",
		"a_b/c/d=":                "a=5Fb_c_d=3D",
	} {
		if got := resolve.Consumer(key); got != want {
			t.Errorf("%s: found %s, want %s", key, got, want)
		}
	}
}

var brokerName = regexp.MustCompile(`^[A-Za-z0-9_=-]{1,128}$`)

// Two keys never share a consumer, however long and however alike they are, and each name is one that the broker takes.
func TestConsumersNeverCollide(t *testing.T) {
	long := strings.Repeat("x", 150)
	keys := rapid.OneOf(
		rapid.StringMatching(`[a-z0-9./_=-]{1,200}`),
		rapid.Map(rapid.StringMatching(`[ab/]{1,3}`), func(s string) string { return long + s }),
		rapid.StringN(1, 50, -1),
	)
	rapid.Check(t, func(t *rapid.T) {
		a := keys.Draw(t, "a")
		first := resolve.Consumer(a)
		if !brokerName.MatchString(first) {
			t.Fatalf("%q: found %q, want it to match %s", a, first, brokerName)
		}
		alike := []string{keys.Draw(t, "b"), first, strings.ReplaceAll(a, "/", "."), strings.ReplaceAll(a, ".", "/"),
			strings.ReplaceAll(a, "_", "/"), strings.ReplaceAll(a, "/", "_"), a + "/", strings.ToUpper(a)}
		for _, b := range alike {
			if second := resolve.Consumer(b); (a == b) != (first == second) {
				t.Fatalf("%q and %q: found %s and %s", a, b, first, second)
			}
		}
	})
}

func TestEventTypes(t *testing.T) {
	triggers := map[string]v1alpha1.TriggerName{
		"OrderConfirmed": "order.post", "OrderImported": "order.post", "Shipped": "event.Packed",
	}
	for trigger, want := range map[v1alpha1.TriggerName]string{
		"order.post":           "OrderConfirmed OrderImported",
		"event.InvoicePaid":    "InvoicePaid",
		"event.invoice.paid":   "invoice.paid",
		"event.OrderConfirmed": "", // mapped to another trigger
		"event.Packed":         "Packed Shipped",
		"event.Shipped":        "",
		"event.":               "",
		"event.1":              "",
		"order.pre":            "",
	} {
		if got := strings.Join(resolve.EventTypes(trigger, triggers), " "); got != want {
			t.Errorf("%s: found %q, want %q", trigger, got, want)
		}
	}
}

func definition(t *testing.T, text string) engine.Definition {
	t.Helper()
	var parsed engine.Definition
	if err := json.Unmarshal([]byte(text), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestRevision(t *testing.T) {
	revision := func(text string) string {
		t.Helper()
		got, err := resolve.Revision(definition(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := revision(`{"nodes":[{"id":"a","type":"start","config":{"x":1,"y":[1.50,2]}}],"edges":[]}`)
	if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(first) {
		t.Errorf("found %q; want 16 hexadecimal digits", first)
	}
	if same := revision(`{"nodes":[{"onError":"abort","type":"start","id":"a","config":{ "y":[1.50,2], "x":1 }}]}`); same != first {
		t.Errorf("the same graph: found %s, want %s", same, first)
	}
	seen := map[string]string{first: "the first"}
	for _, other := range []string{
		`{"nodes":[{"id":"b","type":"start","config":{"x":1,"y":[1.50,2]}}]}`,
		`{"nodes":[{"id":"a","type":"start","config":{"x":1,"y":[2,1.50]}}]}`,
		`{"nodes":[{"id":"a","type":"start","config":{"x":"1","y":[1.50,2]}}]}`,
		`{"nodes":[{"id":"a","type":"start","config":{"x":1,"y":[1.50,2]},"timeout":"1s"}]}`,
		`{"nodes":[{"id":"a","type":"start","config":{"x":1,"y":[1.50,2]},"onError":"continue"}]}`,
		`{"nodes":[{"id":"a","type":"start","config":{"x":1,"y":[1.50,2]}}],"edges":[{"from":"a","to":"a"}]}`,
		`{"nodes":[{"id":"a","type":"start","config":{"x":1,"y":[1.50,2]}}],"edges":[{"from":"a","to":"a","branch":"error"}]}`,
	} {
		got := revision(other)
		if before, taken := seen[got]; taken {
			t.Errorf("%s has the revision %s of %s", other, got, before)
		}
		seen[got] = other
	}
}

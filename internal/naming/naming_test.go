package naming_test

import (
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/relayops/relayops/internal/naming"
)

var long = strings.Repeat("a", 62) + "b"

// These names are what an upgrade must not change: an object of another name would be another object.
func TestNames(t *testing.T) {
	for _, one := range []struct{ got, want string }{
		{naming.Relay("orders"), "orders-relay"},
		{naming.Worker("orders"), "orders-worker"},
		{naming.RelayCleanup("orders"), "orders-relay-cleanup"},
		{naming.WorkerCleanup("orders"), "orders-worker-cleanup"},
		{naming.Relay("shop.orders"), "shop-orders-relay-7458f44c"},
		{naming.Worker("shop.orders"), "shop-orders-worker-7458f44c"},
		{naming.Relay("shop-orders"), "shop-orders-relay"},
		{naming.Relay("7-eleven"), "x7-eleven-relay-a756f7da"},
		{naming.Relay(long), strings.Repeat("a", 48) + "-relay-0085f9f5"},
		{naming.WorkerCleanup(long), strings.Repeat("a", 39) + "-worker-cleanup-0085f9f5"},
		{naming.Relay(strings.Repeat("a", 47) + "-bbbbbbbbbb"), strings.Repeat("a", 47) + "-relay-2d924730"},
		{naming.SecretVolume("orders-database"), "relayops-secret-orders-database"},
		{naming.SecretVolume("orders.database"), "relayops-secret-orders-database--h6ba4bc07"},
	} {
		if one.got != one.want {
			t.Errorf("found %s, want %s", one.got, one.want)
		}
	}
}

func TestSelectors(t *testing.T) {
	for _, one := range []struct{ labels, selector, cleanup, want map[string]string }{
		{naming.RelayLabels("orders"), naming.RelaySelector("orders"), naming.RelayCleanupLabels("orders"), map[string]string{
			"app.kubernetes.io/name": "relayops-relay", "relayops.io/outboxrelay": "orders",
		}},
		{naming.WorkerLabels("orders"), naming.WorkerSelector("orders"), naming.WorkerCleanupLabels("orders"), map[string]string{
			"app.kubernetes.io/name": "relayops-worker", "relayops.io/pipeline": "orders",
		}},
	} {
		if !maps.Equal(one.selector, one.want) {
			t.Errorf("found the selector %v, want %v, which never changes", one.selector, one.want)
		}
		if !selects(one.selector, one.labels) {
			t.Errorf("found %v, which %v does not select", one.labels, one.selector)
		}
		if selects(one.selector, one.cleanup) {
			t.Errorf("found %v, which %v selects: a Service would send status calls to a cleanup", one.cleanup, one.selector)
		}
		if one.labels["app.kubernetes.io/managed-by"] != "relayops" || one.cleanup["app.kubernetes.io/managed-by"] != "relayops" {
			t.Errorf("found %v and %v; the operator's cache holds only what it manages", one.labels, one.cleanup)
		}
	}
}

func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// Names of resources: as the schema allows them, many of them alike.
func resourceName() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,4}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,3}[a-z0-9])?)?`),
		rapid.StringMatching(`[a-b]{1,3}(-(relay|worker|cleanup|[0-9a-f]{8})){0,3}`),
		rapid.StringMatching(`[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?`).Filter(func(name string) bool {
			return len(validation.IsDNS1123Subdomain(name)) == 0
		}),
		rapid.StringMatching(`a{55,62}[ab]`),
	)
}

// Within a namespace, no two resources share a child's name, and each name is good for every kind of child. A Service's
// is the strictest, and a Job's has to be a label.
func TestNamesAreValidAndDistinct(t *testing.T) {
	makers := map[string]func(string) string{
		"relay": naming.Relay, "worker": naming.Worker,
		"relay-cleanup": naming.RelayCleanup, "worker-cleanup": naming.WorkerCleanup,
	}
	rapid.Check(t, func(t *rapid.T) {
		taken := map[string]string{}
		for _, owner := range rapid.SliceOfNDistinct(resourceName(), 2, 12, rapid.ID[string]).Draw(t, "owners") {
			for role, name := range makers {
				child := name(owner)
				if faults := validation.IsDNS1035Label(child); len(faults) > 0 {
					t.Fatalf("%s of %q: found %q: %v", role, owner, child, faults)
				}
				// A cleanup is a Job, of which a Deployment may have the name.
				key := "Deployment " + child
				if strings.HasSuffix(role, "cleanup") {
					key = "Job " + child
				}
				if other, found := taken[key]; found {
					t.Fatalf("found %q for %s of %q and for %s", child, role, owner, other)
				}
				taken[key] = role + " of " + owner
			}
			for key, value := range naming.RelayLabels(owner) {
				if faults := validation.IsValidLabelValue(value); len(faults) > 0 {
					t.Fatalf("label %s of %q: found %q: %v", key, owner, value, faults)
				}
			}
		}
	})
}

func TestVolumesAreValidAndDistinct(t *testing.T) {
	secretName := rapid.OneOf(resourceName(), rapid.StringMatching(`[a-z]([-a-z0-9.]{0,251}[a-z0-9])?`).Filter(
		func(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }))
	rapid.Check(t, func(t *rapid.T) {
		taken := map[string]string{naming.SpecVolume: "the specification"}
		for _, secret := range rapid.SliceOfNDistinct(secretName, 2, 12, rapid.ID[string]).Draw(t, "secrets") {
			volume := naming.SecretVolume(secret)
			if faults := validation.IsDNS1123Label(volume); len(faults) > 0 || !strings.HasPrefix(volume, naming.VolumePrefix) {
				t.Fatalf("secret %q: found %q: %v", secret, volume, faults)
			}
			if other, found := taken[volume]; found {
				t.Fatalf("found %q for %q and %q", volume, secret, other)
			}
			taken[volume] = secret
		}
	})
}

// A name that got past the schema is cut to what a label can hold, and stays itself.
func TestLabelValueOfOverlongNames(t *testing.T) {
	one, other := naming.LabelValue(strings.Repeat("a.", 126)+"b"), naming.LabelValue(strings.Repeat("a.", 126)+"c")
	for _, value := range []string{one, other} {
		if faults := validation.IsValidLabelValue(value); len(faults) > 0 {
			t.Errorf("found %q: %v", value, faults)
		}
	}
	if one == other {
		t.Errorf("found %q for two names", one)
	}
}

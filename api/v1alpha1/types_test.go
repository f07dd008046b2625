package v1alpha1_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/relayops/relayops/api/v1alpha1"
)

func TestRegistration(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{
		v1alpha1.KindOutboxRelay, v1alpha1.KindPipeline, v1alpha1.KindOutboxRelay + "List", v1alpha1.KindPipeline + "List",
	} {
		want := schema.GroupVersionKind{Group: "relayops.io", Version: "v1alpha1", Kind: kind}
		object, err := scheme.New(want)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		found, _, err := scheme.ObjectKinds(object)
		if err != nil || len(found) != 1 || found[0] != want {
			t.Errorf("found %v, %v; want %v", found, err, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[v1alpha1.Duration]time.Duration{
		"": 0, "2s": 2 * time.Second, "1h30m": 90 * time.Minute, "1.5s": 1500 * time.Millisecond,
	} {
		if got, err := text.Std(); err != nil || got != want {
			t.Errorf("%q: found %s, %v; want %s", text, got, err, want)
		}
	}
	if _, err := v1alpha1.Duration("1d").Std(); err == nil || !strings.Contains(err.Error(), `found "1d"; allowed: `) {
		t.Errorf("found %v; want an error that says what is allowed", err)
	}
}

// A Go client that leaves fields out leaves them to the defaults: nothing empty is written in their place.
func TestEmptyFieldsAreLeftOut(t *testing.T) {
	relay := v1alpha1.OutboxRelay{}
	relay.Spec.Database.URLSecretRef = v1alpha1.SecretKeyRef{Name: "a", Key: "b"}
	relay.Spec.NATS.URL = "nats://n:4222"
	text, err := json.Marshal(relay.Spec)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"database":{"urlSecretRef":{"name":"a","key":"b"}},"nats":{"url":"nats://n:4222"}}`
	if string(text) != want {
		t.Errorf("found %s, want %s", text, want)
	}
}

package desired_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/desired"
	"github.com/relayops/relayops/internal/resolve"
	"github.com/relayops/relayops/internal/runspec"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

var (
	plain = desired.Platform{Image: "ghcr.io/relayops/relayops:v1.0.0"}
	all   = desired.Platform{
		Image: "ghcr.io/relayops/relayops:v1.0.0", ImagePullPolicy: "IfNotPresent",
		StatusPublicKey: "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=",
		PodMonitor:      true, NetworkPolicy: true, OperatorNamespace: "relayops-system",
	}
)

// world is one relay and one pipeline, resolved.
type world struct {
	relay    *v1alpha1.OutboxRelay
	pipeline *v1alpha1.Pipeline
	forRelay runspec.Relay
	worker   runspec.Worker
}

func load(t *testing.T, file string) world {
	t.Helper()
	set, relays, workers, problems := resolve.Load(desired.Mounts(), filepath.Join("testdata", file+".yaml"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	w := world{relay: set.Relays[0].Object, pipeline: set.Pipelines[0].Object, forRelay: relays[0], worker: workers[0]}
	w.relay.UID = types.UID("6a7cb1ff-7a2a-4a52-a1a4-b5a38bb0a83d")
	w.pipeline.UID = types.UID("0d4a3f3b-3d1e-4b5e-9a53-0a0f1d6a2f10")
	return w
}

func (w world) relayObjects(t *testing.T, platform desired.Platform) []desired.Object {
	t.Helper()
	objects, err := desired.Relay(w.relay, w.forRelay, platform)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func (w world) workerObjects(t *testing.T, platform desired.Platform) []desired.Object {
	t.Helper()
	objects, err := desired.Worker(w.pipeline, w.relay, w.worker, platform)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func (w world) cleanups(t *testing.T, platform desired.Platform) []desired.Object {
	t.Helper()
	relay, err := desired.RelayCleanup(w.relay, w.forRelay, platform)
	if err != nil {
		t.Fatal(err)
	}
	worker, err := desired.WorkerCleanup(w.pipeline, w.relay, w.worker, platform)
	if err != nil {
		t.Fatal(err)
	}
	return []desired.Object{relay, worker}
}

// cases are all golden files, by their names.
func cases(t *testing.T) map[string][]desired.Object {
	t.Helper()
	minimal, full, names := load(t, "minimal"), load(t, "full"), load(t, "names")
	return map[string][]desired.Object{
		"relay-minimal":  minimal.relayObjects(t, plain),
		"worker-minimal": minimal.workerObjects(t, plain),
		"relay-full":     full.relayObjects(t, all),
		"worker-full":    full.workerObjects(t, all),
		"cleanup":        full.cleanups(t, all),
		"relay-names":    names.relayObjects(t, plain),
		"worker-names":   names.workerObjects(t, plain),
		"cleanup-names":  names.cleanups(t, plain),
	}
}

func text(t *testing.T, objects []desired.Object) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n")
		b.Write(document)
	}
	return b.Bytes()
}

func TestObjects(t *testing.T) {
	for name, objects := range cases(t) {
		t.Run(name, func(t *testing.T) {
			file, got := filepath.Join("testdata", name+".golden.yaml"), text(t, objects)
			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: found\n%s\nwant\n%s\n(-update writes it)", file, got, want)
			}
		})
	}
}

// The same input gives the same bytes, whatever order maps are walked in: otherwise a steady state would be written
// again and again.
func TestObjectsAreDeterministic(t *testing.T) {
	first := cases(t)
	for range 20 {
		for name, objects := range cases(t) {
			if got, want := text(t, objects), text(t, first[name]); !bytes.Equal(got, want) {
				t.Fatalf("%s: found\n%s\nafter\n%s", name, got, want)
			}
		}
	}
}

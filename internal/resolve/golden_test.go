package resolve_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/relayops/relayops/internal/manifest"
	"github.com/relayops/relayops/internal/resolve"
	"github.com/relayops/relayops/internal/runspec"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
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
}

var clusterMounts = resolve.Mounts{SecretDir: "/etc/relayops/secrets", ServerAddress: ":8080"}

// Each file in testdata with a golden file beside it is resolved as the operator would, and the samples also as
// relayops dev does.
func TestSpecifications(t *testing.T) {
	oneMachine := resolve.Mounts{
		Database: &runspec.Database{URL: "postgres://127.0.0.1:5432/dev"}, NATS: &runspec.NATS{URL: "nats://127.0.0.1:4222"},
	}
	for _, one := range []struct {
		name, path string
		mounts     resolve.Mounts
	}{
		{"samples", "../../config/samples", clusterMounts},
		{"samples-on-one-machine", "../../config/samples", oneMachine},
		{"everything", "testdata/everything.yaml", clusterMounts},
	} {
		t.Run(one.name, func(t *testing.T) {
			_, relays, workers, problems := resolve.Load(one.mounts, one.path)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			text, err := json.MarshalIndent(map[string]any{"relays": relays, "workers": workers}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, one.name+".golden.json", append(text, '\n'))
		})
	}
}

func TestAllMistakesAtOnce(t *testing.T) {
	_, relays, workers, problems := resolve.Load(clusterMounts, "testdata/mistakes.yaml")
	golden(t, "mistakes.golden.txt", []byte(problems.Error()+"\n"))
	if len(workers) != 0 || len(relays) != 1 {
		t.Errorf("found %d relays and %d workers; want the one relay that has no mistake", len(relays), len(workers))
	}
}

// load resolves documents, and gives the problems without file, line and object.
func load(t *testing.T, mounts resolve.Mounts, text string) string {
	t.Helper()
	set, problems := manifest.Read("test.yaml", strings.NewReader(text))
	_, _, more := resolve.Set(set, mounts)
	var lines []string
	for _, problem := range problems.Merge(more) {
		problem.File, problem.Line, problem.Object = "", 0, ""
		lines = append(lines, problem.String())
	}
	return strings.Join(lines, "\n")
}

package manifest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
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

func TestDefaults(t *testing.T) {
	set, problems := read(minimalRelay + "---" + minimalPipeline)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	text, err := json.MarshalIndent(map[string]any{
		"OutboxRelay": set.Relays[0].Object, "Pipeline": set.Pipelines[0].Object,
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "defaults.golden.json", append(text, '\n'))
}

// Parts of a structure that a user writes keep the defaults of the other parts.
func TestDefaultsBesideGivenFields(t *testing.T) {
	relay := with(t, minimalRelay, "spec/stream/replicas", "3")
	relay = with(t, relay, "spec/backOff/multiplier", "3")
	pipeline := with(t, minimalPipeline, "spec/retry/attempts", "2")
	set, problems := read(relay + "---\n" + pipeline)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	spec := set.Relays[0].Object.Spec
	if spec.Stream.Replicas != 3 || spec.Stream.MaxAge != "168h" || spec.BackOff.Multiplier != 3 ||
		spec.BackOff.Initial != "1s" {
		t.Errorf("found %+v %+v", spec.Stream, spec.BackOff)
	}
	if retry := set.Pipelines[0].Object.Spec.Retry; retry.Attempts != 2 || retry.BackOff.Max != "5m" {
		t.Errorf("found %+v", retry)
	}
}

func TestAllMistakesAtOnce(t *testing.T) {
	set, problems := Load("testdata/mistakes.yaml")
	golden(t, "mistakes.golden.txt", []byte(problems.Error()+"\n"))
	// What can be decoded is in the set, so that its other mistakes can be found too.
	if len(set.Relays) != 1 || !set.Relays[0].Faulty || len(set.Pipelines) != 1 || !set.Pipelines[0].Faulty {
		t.Errorf("found %d relays and %d pipelines; want one faulty one of each", len(set.Relays), len(set.Pipelines))
	}
	if len(set.Notes) != 1 || set.Notes[0].Line == 0 {
		t.Errorf("found the notes %v; want one of the Secret", set.Notes)
	}
}

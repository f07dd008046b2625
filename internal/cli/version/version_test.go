package version

import (
	"runtime/debug"
	"testing"

	"github.com/relayops/relayops/internal/schema"
)

func TestWhatABuildKnowsOfItself(t *testing.T) {
	build := &debug.BuildInfo{
		GoVersion: "go1.26.0", Main: debug.Module{Version: "v0.1.0"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
	}
	want := Info{Version: "v0.1.0", Commit: "abc+dirty", Go: "go1.26.0", Schema: schema.Version()}
	if got := of(build); got != want {
		t.Errorf("of = %+v, want %+v", got, want)
	}
	if got := of(nil); got.Version != "(devel)" || got.Commit != "" {
		t.Errorf("of no build information = %+v", got)
	}
}

// Package version is the command relayops version.
package version

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/relayops/relayops/internal/cli/output"
	"github.com/relayops/relayops/internal/schema"
)

// Info is what a binary knows of itself.
type Info struct {
	// Version is the module's, such as v0.1.0, or (devel) for a build from a work tree.
	Version string `json:"version"`
	// Commit is the work tree's, empty where the build had none; with "+dirty" if it had changes.
	Commit string `json:"commit,omitempty"`
	Go     string `json:"go"`
	// Schema is the version of the database schema that the binary works with.
	Schema int `json:"schema"`
}

// New makes the command.
func New() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version of this program", Args: cobra.NoArgs}
	format := output.Add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		build, _ := debug.ReadBuildInfo()
		info := of(build)
		if *format == output.JSON {
			return output.WriteJSON(cmd.OutOrStdout(), info)
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), info)
		return err
	}
	return cmd
}

func of(build *debug.BuildInfo) Info {
	info := Info{Version: "(devel)", Schema: schema.Version()}
	if build == nil {
		return info
	}
	info.Go = build.GoVersion
	if build.Main.Version != "" {
		info.Version = build.Main.Version
	}
	dirty := false
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.Commit = setting.Value
		case "vcs.modified":
			dirty = setting.Value == "true"
		}
	}
	if dirty && info.Commit != "" {
		info.Commit += "+dirty"
	}
	return info
}

func (i Info) String() string {
	text := "relayops " + i.Version
	if i.Commit != "" {
		text += " (" + i.Commit + ")"
	}
	return fmt.Sprintf("%s, schema %d, %s", text, i.Schema, i.Go)
}

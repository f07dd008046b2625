// Program golangci-lint is golangci-lint with kube-api-linter in it, which checks api/ against the Kubernetes API
// conventions. It is what `golangci-lint custom` would generate, without a clone of its repository.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"

	_ "sigs.k8s.io/kube-api-linter"
)

const module = "github.com/golangci/golangci-lint/v2"

func main() {
	if err := commands.Execute(buildInfo()); err != nil {
		fmt.Fprintf(os.Stderr, "golangci-lint ended with an error: %v\n", err)
		os.Exit(exitcodes.Failure)
	}
}

func buildInfo() commands.BuildInfo {
	info := commands.BuildInfo{Version: "unknown", GoVersion: "unknown", Commit: "with kube-api-linter", Date: "unknown"}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	info.GoVersion = build.GoVersion
	for _, dependency := range build.Deps {
		if dependency.Path == module {
			info.Version = dependency.Version
		}
	}
	return info
}

// Package lint is the command relayops lint: every mistake of some manifests, without a cluster.
package lint

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/relayops/relayops/internal/cli/output"
	"github.com/relayops/relayops/internal/manifest"
	"github.com/relayops/relayops/internal/resolve"
)

// Report is what -o json prints.
type Report struct {
	// Objects are those that have no mistake, such as "Pipeline default/order-post".
	Objects  []string          `json:"objects"`
	Problems manifest.Problems `json:"problems"`
	// Notes say what was skipped.
	Notes []manifest.Note `json:"notes"`
}

// New makes the command.
func New() *cobra.Command {
	var paths []string
	cmd := &cobra.Command{
		Use:   "lint -f FILE|DIR",
		Short: "Report every mistake of some manifests",
		Long: "Checks OutboxRelays and Pipelines as the Kubernetes API server and the operator would, without a cluster:\n" +
			"fields, bounds and rules of the schema, graphs and node configurations, references, and timing. All mistakes\n" +
			"are reported at once, each with file, line, object, field, what was found and what is allowed.\n\n" +
			"The exit status is 1 if there is any mistake.",
		Example: "  relayops lint -f config/samples\n  relayops lint -f relay.yaml -f pipeline.yaml -o json\n" +
			"  kustomize build overlays/production | relayops lint -f -",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
	}
	cmd.Flags().StringArrayVarP(&paths, "filename", "f", nil, "file, directory, or - for standard input; may be repeated")
	if err := cmd.MarkFlagRequired("filename"); err != nil {
		panic(err) // the flag exists
	}
	format := output.Add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		report := check(paths, cmd.InOrStdin())
		if err := report.write(cmd.OutOrStdout(), cmd.ErrOrStderr(), *format); err != nil {
			return err
		}
		switch n := len(report.Problems); n {
		case 0:
			return nil
		case 1:
			return fmt.Errorf("found 1 mistake")
		default:
			return fmt.Errorf("found %d mistakes", n)
		}
	}
	return cmd
}

func check(paths []string, stdin io.Reader) Report {
	var (
		files    []string
		standard manifest.Set
		problems manifest.Problems
	)
	for _, path := range paths {
		if path != "-" {
			files = append(files, path)
			continue
		}
		standard, problems = manifest.Read("-", stdin)
	}
	set := standard
	if len(files) > 0 {
		loaded, more := manifest.Load(files...)
		set, problems = loaded.With(standard), append(more, problems...)
	}
	relays, workers, more := resolve.Set(set, resolve.Mounts{})
	report := Report{Objects: []string{}, Problems: problems.Merge(more), Notes: append([]manifest.Note{}, set.Notes...)}
	for _, relay := range relays {
		report.Objects = append(report.Objects, "OutboxRelay "+relay.Key)
	}
	for _, worker := range workers {
		report.Objects = append(report.Objects, "Pipeline "+worker.PipelineKey)
	}
	return report
}

func (r Report) write(stdout, stderr io.Writer, format output.Format) error {
	if format == output.JSON {
		return output.WriteJSON(stdout, r)
	}
	for _, note := range r.Notes {
		if _, err := fmt.Fprintln(stderr, note); err != nil {
			return err
		}
	}
	for _, problem := range r.Problems {
		if _, err := fmt.Fprintln(stderr, problem); err != nil {
			return err
		}
	}
	for _, object := range r.Objects {
		if _, err := fmt.Fprintf(stdout, "%s: no mistake\n", object); err != nil {
			return err
		}
	}
	return nil
}

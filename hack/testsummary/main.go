// Command testsummary reads what go test -json prints: it shows each package's result as it comes, the output of what
// failed, and at the end how many tests passed and failed. It exits with 1 if anything failed or no test ran.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	s := newSummary(os.Stdout)
	if err := s.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		os.Exit(1)
	}
	if !s.finish() {
		os.Exit(1)
	}
}

// event is one line of go test -json (see go doc test2json), or of go build -json.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

// test names a test, or with an empty name a package.
type test struct{ pkg, name string }

type summary struct {
	out                                  io.Writer
	passed, failed, skipped, badPackages int
	output                               map[test]*strings.Builder
	failedTests                          []test
}

func newSummary(out io.Writer) *summary {
	return &summary{out: out, output: map[test]*strings.Builder{}}
}

func (s *summary) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			s.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the tests' output: %w", err)
		}
	}
}

func (s *summary) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		s.print("%s", line) // Of go itself, such as a flag that it does not know.
		return
	}
	of := test{e.Package, e.Test}
	switch e.Action {
	case "output":
		if s.output[of] == nil {
			s.output[of] = &strings.Builder{}
		}
		_, _ = s.output[of].WriteString(e.Output) // A strings.Builder does not fail.
	case "build-output":
		s.print("%s", e.Output)
	case "pass", "fail", "skip":
		s.result(e, of)
	}
}

func (s *summary) result(e event, of test) {
	if e.Test == "" {
		s.packageResult(e, of)
		return
	}
	switch e.Action {
	case "pass":
		s.passed++
	case "skip":
		s.skipped++
	case "fail":
		s.failed++
		s.failedTests = append(s.failedTests, of)
		s.printOutput(of)
	}
	delete(s.output, of)
}

func (s *summary) packageResult(e event, of test) {
	switch e.Action {
	case "pass":
		s.print("ok    %s  %.1fs\n", e.Package, e.Elapsed)
	case "fail":
		s.badPackages++
		s.printOutput(of)
		// A test that was cut off, by a panic or the time limit, has no result of its own.
		for other := range s.output {
			if other.pkg == e.Package && other.name != "" {
				s.printOutput(other)
			}
		}
		s.print("FAIL  %s  %.1fs\n", e.Package, e.Elapsed)
	}
	for other := range s.output {
		if other.pkg == e.Package {
			delete(s.output, other)
		}
	}
}

func (s *summary) printOutput(of test) {
	if text := s.output[of]; text != nil {
		s.print("%s", text.String())
	}
}

func (s *summary) print(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }

// finish prints the end of the report and says whether all is well.
func (s *summary) finish() bool {
	s.print("\n")
	for _, of := range s.failedTests {
		s.print("failed: %s %s\n", of.pkg, of.name)
	}
	if s.badPackages > 0 {
		s.print("packages that failed: %d\n", s.badPackages)
	}
	s.print("%d passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped)
	return s.failed == 0 && s.badPackages == 0 && s.passed > 0
}

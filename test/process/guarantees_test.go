package process_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/guarantees.md has every guarantee of the design, names a test for each or says that it is not in this release,
// and names no test that does not exist.
func TestGuaranteesNameTheirTests(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md"))
	must(t, err)
	const guarantees = 13
	sections := regexp.MustCompile(`(?m)^## \d+\. `).Split(string(page), -1)[1:]
	if len(sections) != guarantees {
		t.Fatalf("%d guarantees, wanted %d", len(sections), guarantees)
	}
	for i, section := range sections {
		names := regexp.MustCompile("`([a-z0-9/]+)\\.(Test\\w+)`").FindAllStringSubmatch(section, -1)
		if len(names) == 0 && !strings.Contains(section, "Not in this release") {
			t.Errorf("guarantee %d names no test", i+1)
		}
		for _, name := range names {
			if !hasTest(t, filepath.Join(root, name[1]), name[2]) {
				t.Errorf("guarantee %d: %s has no %s", i+1, name[1], name[2])
			}
		}
	}
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}

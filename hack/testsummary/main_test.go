package main

import (
	"strings"
	"testing"
)

func TestPassedTestsAreCountedAndSilent(t *testing.T) {
	text, ok := run(t, `
		{"Action":"output","Package":"a","Test":"TestA","Output":"noise\n"}
		{"Action":"pass","Package":"a","Test":"TestA","Elapsed":0.1}
		{"Action":"pass","Package":"a","Elapsed":1.25}
		{"Action":"skip","Package":"without-tests"}`)
	if want := "ok    a  1.2s\n\n1 passed, 0 failed, 0 skipped\n"; text != want || !ok {
		t.Errorf("summary = %v %q, want %q", ok, text, want)
	}
}

func TestAFailureShowsItsOutputAndItsName(t *testing.T) {
	text, ok := run(t, `
		{"Action":"output","Package":"a","Test":"TestA","Output":"found 1, want 2\n"}
		{"Action":"fail","Package":"a","Test":"TestA"}
		{"Action":"fail","Package":"a"}`)
	if ok || !strings.Contains(text, "found 1, want 2") || !strings.Contains(text, "failed: a TestA") ||
		!strings.HasSuffix(text, "0 passed, 1 failed, 0 skipped\n") {
		t.Errorf("summary = %v %q", ok, text)
	}
}

func TestAPackageThatDoesNotBuildOrIsCutOffFails(t *testing.T) {
	for name, lines := range map[string]string{
		"does not build": `
			{"Action":"build-output","ImportPath":"a","Output":"a.go:1: the cause\n"}
			{"Action":"pass","Package":"b","Test":"TestB"}
			{"Action":"fail","Package":"a"}`,
		"cut off": `
			{"Action":"pass","Package":"a","Test":"TestB"}
			{"Action":"output","Package":"a","Test":"TestA","Output":"panic: the cause\n"}
			{"Action":"fail","Package":"a"}`,
		"no JSON": `
			flag provided but not defined: the cause`,
	} {
		t.Run(name, func(t *testing.T) {
			if text, ok := run(t, lines); ok || !strings.Contains(text, "the cause") {
				t.Errorf("summary = %v %q", ok, text)
			}
		})
	}
}

func TestNoTestAtAllIsAFailure(t *testing.T) {
	if text, ok := run(t, ""); ok {
		t.Errorf("summary = %q is good", text)
	}
}

func run(t *testing.T, lines string) (text string, ok bool) {
	t.Helper()
	var b strings.Builder
	s := newSummary(&b)
	if err := s.read(strings.NewReader(strings.ReplaceAll(strings.TrimSpace(lines), "\t", ""))); err != nil {
		t.Fatal(err)
	}
	ok = s.finish()
	return b.String(), ok
}

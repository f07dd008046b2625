package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Limits of what is read. A manifest beyond them is a mistake, and not read any further.
const (
	// MaxFileBytes bounds one file, in bytes.
	MaxFileBytes = 4 << 20
	// MaxFiles bounds the files of one directory.
	MaxFiles = 1000
	// MaxDocuments bounds the documents of one file, and the items of a List.
	MaxDocuments = 1000
)

var extensions = []string{".yaml", ".yml", ".json"}

// Load reads files and directories: of a directory, its files (not those of directories in it) that end in .yaml,
// .yml or .json, in the order of their names. It never stops at the first mistake: the set holds every object that
// could be decoded, the problems all that is wrong. Nothing may be started while there is a problem.
func Load(paths ...string) (Set, Problems) {
	var loading loading
	for _, path := range paths {
		loading.path(path)
	}
	if len(loading.problems) == 0 && loading.files == 0 {
		loading.problem(strings.Join(paths, ", "), "no manifest", "a file, or a directory with files that end in "+
			strings.Join(extensions, ", "))
	}
	loading.duplicates()
	return loading.set, loading.problems
}

// Read reads the documents of one stream, which problems call by name.
func Read(name string, from io.Reader) (Set, Problems) {
	var loading loading
	loading.read(name, from)
	loading.duplicates()
	return loading.set, loading.problems
}

type loading struct {
	set      Set
	problems Problems
	files    int
}

func (l *loading) problem(file, found, allowed string) {
	l.problems = append(l.problems, Problem{File: file, Found: found, Allowed: allowed})
}

func (l *loading) note(file string, line int, text string) {
	l.set.Notes = append(l.set.Notes, Note{File: file, Line: line, Text: text})
}

func (l *loading) path(path string) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		l.problem(path, reason(err), "a readable file or directory")
	case info.IsDir():
		l.directory(path)
	default:
		l.file(path, info)
	}
}

func (l *loading) directory(path string) {
	entries, err := os.ReadDir(path)
	if err != nil {
		l.problem(path, reason(err), "a directory that can be read")
		return
	}
	read := 0
	for _, entry := range entries {
		name := filepath.Join(path, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		// Stat and not the entry's own type: mounted ConfigMaps are symbolic links.
		info, err := os.Stat(name)
		switch {
		case err == nil && info.IsDir():
			l.note(name, 0, "skipped: a directory in a directory")
		case !slices.Contains(extensions, strings.ToLower(filepath.Ext(name))):
		case err != nil:
			l.problem(name, reason(err), "a file that can be read")
		case isKustomization(entry.Name()):
			l.note(name, 0, "skipped: kustomize's own file")
		case read == MaxFiles:
			l.problem(path, fmt.Sprintf("more than %d manifests", MaxFiles), "fewer in one directory")
			return
		default:
			read++
			l.file(name, info)
		}
	}
}

func isKustomization(name string) bool {
	return slices.Contains([]string{"kustomization.yaml", "kustomization.yml"}, strings.ToLower(name))
}

func (l *loading) file(path string, info fs.FileInfo) {
	l.files++
	if !info.Mode().IsRegular() {
		// Opening a named pipe would wait for ever.
		l.problem(path, "a special file", "a regular file or a directory")
		return
	}
	file, err := os.Open(path)
	if err != nil {
		l.problem(path, reason(err), "a file that can be read")
		return
	}
	l.read(path, file)
	if err := file.Close(); err != nil {
		l.problem(path, reason(err), "a file that can be read")
	}
}

func (l *loading) read(name string, from io.Reader) {
	text, err := io.ReadAll(io.LimitReader(from, MaxFileBytes+1))
	switch {
	case err != nil:
		l.problem(name, reason(err), "a file that can be read")
	case len(text) > MaxFileBytes:
		l.problem(name, fmt.Sprintf("more than %d bytes", MaxFileBytes), fmt.Sprintf("at most %d", MaxFileBytes))
	default:
		l.documents(name, text)
	}
}

// reason is an error of the file system without the path, which the problem names already.
func reason(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return "an error: " + path.Err.Error()
	}
	return "an error: " + err.Error()
}

// duplicates reports objects that stand in the manifests twice.
func (l *loading) duplicates() {
	first := make(map[string]Source)
	check := func(source Source, name string) {
		if other, taken := first[name]; taken {
			where := fmt.Sprintf("document %d", other.Document)
			if other.File != source.File {
				where = other.File
			}
			l.problems = append(l.problems, source.Problem(name, "metadata.name",
				"the name of an object in "+where+" too", "one object of a kind, namespace and name"))
			return
		}
		first[name] = source
	}
	for _, relay := range l.set.Relays {
		check(relay.Source, relay.name())
	}
	for _, pipeline := range l.set.Pipelines {
		check(pipeline.Source, pipeline.name())
	}
}

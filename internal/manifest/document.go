package manifest

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/relayops/relayops/api/v1alpha1"
)

// document is one YAML document of a file.
type document struct {
	file   string
	number int
	text   []byte
	lines  lineIndex
	// item is a path to an object within the document: "items[2]" of a List.
	item string
}

func (d document) source() Source {
	return Source{File: d.file, Document: d.number, lines: d.lines.below(d.item)}
}

func (d document) name() string {
	if d.item != "" {
		return fmt.Sprintf("document %d %s", d.number, d.item)
	}
	return fmt.Sprintf("document %d", d.number)
}

func (l *loading) documents(file string, text []byte) {
	if !utf8.Valid(text) {
		l.problem(file, "bytes that are not UTF-8", "YAML or JSON in UTF-8")
		return
	}
	parts, problem := split(text)
	if problem != nil {
		problem.File = file
		l.problems = append(l.problems, *problem)
		return
	}
	for i, part := range parts {
		l.document(document{file: file, number: i + 1, text: part.text, lines: lineIndex{first: part.line}})
	}
}

// part is a document's text and the line that it begins at.
type part struct {
	line int
	text []byte
}

// split cuts a stream at lines that begin with "---" or "...": at the beginning of a line these end a document even
// within a block of text (YAML 1.2, section 9.1). Documents of nothing but comments are left out.
func split(text []byte) ([]part, *Problem) {
	var parts []part
	current := part{line: 1}
	flush := func() {
		if !blank(current.text) {
			parts = append(parts, current)
		}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	for number := 1; len(text) > 0; number++ {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		length := len(text) - len(rest)
		marker, after := cutMarker(line)
		switch {
		case marker == "":
			current.text = append(current.text, text[:length]...)
		case after != "" && !strings.HasPrefix(after, "#"):
			return nil, &Problem{
				Line: number, Found: fmt.Sprintf("%s beside %s", quote(after), quote(marker)),
				Allowed: "nothing but a comment on the line that separates documents",
			}
		default:
			flush()
			current = part{line: number + 1}
		}
		text = rest
	}
	flush()
	if len(parts) > MaxDocuments {
		return nil, &Problem{Found: fmt.Sprintf("%d documents", len(parts)), Allowed: fmt.Sprintf("at most %d", MaxDocuments)}
	}
	return parts, nil
}

func cutMarker(line []byte) (marker, after string) {
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return "", ""
	}
	rest := string(line[3:])
	if rest != "" && !strings.ContainsAny(rest[:1], " \t\r") {
		return "", ""
	}
	return string(line[:3]), strings.TrimSpace(rest)
}

func blank(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

func (l *loading) document(d document) {
	fault := func(found, allowed string) {
		l.problems = append(l.problems, Problem{
			File: d.file, Line: d.lines.first, Object: d.name(), Found: found, Allowed: allowed,
		})
	}
	converted, err := yaml.YAMLToJSONStrict(d.text)
	if err != nil {
		line, found := yamlError(err, d.lines.first)
		l.problems = append(l.problems, Problem{
			File: d.file, Line: line, Object: d.name(), Found: found, Allowed: "one YAML or JSON object, each key once",
		})
		return
	}
	var value any
	// This decoder keeps integers as int64, as the API server has them.
	if err := json.Unmarshal(converted, &value); err != nil {
		fault("a value that has no JSON form: "+clip(err.Error()), "what can be written as JSON")
		return
	}
	object, isObject := value.(map[string]any)
	if !isObject {
		if value != nil {
			fault(shape(value), "an object with apiVersion and kind")
		}
		return
	}
	d.lines = indexLines(d.text, d.lines.first)
	l.object(d, object)
}

func (l *loading) object(d document, object map[string]any) {
	apiVersion, kind := text(object, "apiVersion"), text(object, "kind")
	for _, field := range []struct{ name, value, example string }{
		{"apiVersion", apiVersion, v1alpha1.GroupVersion.String()},
		{"kind", kind, v1alpha1.KindPipeline},
	} {
		if field.value == "" {
			l.problems = append(l.problems, d.source().Problem(d.name(), field.name, describe(object[field.name]),
				"a string, such as "+field.example))
		}
	}
	if apiVersion == "" || kind == "" {
		return
	}
	if apiVersion == "v1" && kind == "List" {
		l.list(d, object)
		return
	}
	version, err := schema.ParseGroupVersion(apiVersion)
	switch {
	case err != nil:
		l.problems = append(l.problems, d.source().Problem(d.name(), "apiVersion", quote(apiVersion),
			"group/version, such as "+v1alpha1.GroupVersion.String()))
	case version.Group != v1alpha1.Group:
		l.note(d.file, d.source().lines.find(""), fmt.Sprintf("skipped: %s of %s", clip(kind), clip(apiVersion)))
	case version != v1alpha1.GroupVersion:
		l.problems = append(l.problems, d.source().Problem(d.name(), "apiVersion", quote(apiVersion),
			v1alpha1.GroupVersion.String()))
	default:
		l.resource(d, kind, object)
	}
}

func (l *loading) list(d document, object map[string]any) {
	items, isList := object["items"].([]any)
	fault := func(found, allowed string) {
		l.problems = append(l.problems, d.source().Problem(d.name(), "items", found, allowed))
	}
	switch {
	case d.item != "":
		fault("a List in a List", "objects")
		return
	case !isList:
		fault(describe(object["items"]), "a list of objects")
		return
	case len(items) > MaxDocuments:
		fault(fmt.Sprintf("%d items", len(items)), fmt.Sprintf("at most %d", MaxDocuments))
		return
	}
	for i, item := range items {
		inner := d
		inner.item = fmt.Sprintf("items[%d]", i)
		if one, isObject := item.(map[string]any); isObject {
			l.object(inner, one)
			continue
		}
		l.problems = append(l.problems, inner.source().Problem(inner.name(), "", describe(item), "an object"))
	}
}

func text(object map[string]any, field string) string {
	value, _ := object[field].(string)
	return value
}

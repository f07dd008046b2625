package manifest

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// lineIndex finds the line of a field in a document. The zero value knows none.
type lineIndex struct {
	// first line of the document.
	first int
	root  *yaml.Node
}

// indexLines reads a document a second time, for its lines alone: what the values are is the API server's decoder's
// to say. A document that this parser does not understand has only its first line.
func indexLines(text []byte, first int) lineIndex {
	index := lineIndex{first: first}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil || len(node.Content) != 1 {
		return index
	}
	index.root = node.Content[0]
	return index
}

// below is the index of an object within the document.
func (x lineIndex) below(path string) lineIndex {
	node, _ := x.walk(path)
	if node == nil {
		return x
	}
	return lineIndex{first: x.first, root: node}
}

// find is the line of the field, or of the nearest field above it that stands in the document.
func (x lineIndex) find(path string) int {
	node, line := x.walk(path)
	switch {
	case line > 0:
		return x.first + line - 1
	case node != nil:
		return x.first + node.Line - 1
	default:
		return x.first
	}
}

var pathStep = regexp.MustCompile(`\[[^\]]*\]|[^.\[]+`)

// walk follows a path as far as the document goes; line is that of the last key which it passed, 0 for none.
func (x lineIndex) walk(path string) (node *yaml.Node, line int) {
	node = x.root
	if node == nil {
		return nil, 0
	}
	steps := pathStep.FindAllString(path, -1)
	for i := 0; i < len(steps); i++ {
		node = follow(node)
		key, isIndex := strings.CutPrefix(steps[i], "[")
		key = strings.TrimSuffix(key, "]")
		switch node.Kind {
		case yaml.MappingNode:
			next, at := mapValue(node, key)
			// A key of a map may hold dots, which the path does not mark.
			for taken := i + 1; next == nil && taken < len(steps) && !isIndex; taken++ {
				key += "." + steps[taken]
				if next, at = mapValue(node, key); next != nil {
					i = taken
				}
			}
			if next == nil {
				return node, line
			}
			node, line = next, at
		case yaml.SequenceNode:
			n, err := strconv.Atoi(key)
			if err != nil || n < 0 || n >= len(node.Content) {
				return node, line
			}
			node = node.Content[n]
			line = node.Line
		default:
			return node, line
		}
	}
	return follow(node), line
}

func mapValue(node *yaml.Node, key string) (value *yaml.Node, line int) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1], node.Content[i].Line
		}
	}
	return nil, 0
}

// follow goes from an alias to its anchor.
func follow(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode && node.Alias != nil {
		node = node.Alias
	}
	return node
}

var duplicateKey = regexp.MustCompile(`key ("[^"]*") already set in map`)

var yamlLine = regexp.MustCompile(`line (\d+): `)

// yamlError takes the line out of a YAML error, and makes it one of the file.
func yamlError(err error, first int) (line int, found string) {
	text := strings.NewReplacer("error converting YAML to JSON: ", "", "yaml: ", "", "\n", " ").Replace(err.Error())
	line = first
	if match := yamlLine.FindStringSubmatchIndex(text); match != nil {
		if n, err := strconv.Atoi(text[match[2]:match[3]]); err == nil {
			line = first + n - 1
		}
		text = text[:match[0]] + text[match[1]:]
	}
	text = clip(text)
	if match := duplicateKey.FindStringSubmatch(text); match != nil {
		return line, "the key " + match[1] + " twice in one object"
	}
	return line, "no YAML: " + text
}

package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every code that is declared is in the closed list, and is explained to the operator who meets it.
func TestCodesAreListedAndDocumented(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "failure.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/dead-letters.md")
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Code") {
			return true
		}
		declared++
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(Codes(), Code(text)) {
			t.Errorf("%s is not in Codes()", text)
		}
		if !strings.Contains(string(page), "| `"+text+"` |") {
			t.Errorf("docs/dead-letters.md does not explain %s", text)
		}
		return true
	})
	if declared != len(Codes()) {
		t.Errorf("%d codes are declared, %d listed", declared, len(Codes()))
	}
}

package expression

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/relayops/relayops/internal/engine"
)

// inspect finds the steps that an expression reads, and refuses what CEL's checker lets pass: fields that the
// envelope, the context or a step do not have, and functions that could make much of little.
func inspect(checked *ast.AST, field string) ([]engine.Reference, *SyntaxError) {
	i := inspection{field: field, seen: make(map[int64]bool)}
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(i.visit))
	return i.references, i.fault
}

type inspection struct {
	field      string
	references []engine.Reference
	fault      *SyntaxError
	// seen are parts that were looked at together with what surrounds them.
	seen map[int64]bool
}

func (i *inspection) refuse(found, allowed string) {
	if i.fault == nil {
		i.fault = &SyntaxError{Found: found, Allowed: allowed}
	}
}

func (i *inspection) visit(e ast.Expr) {
	if operand, name, ok := member(e); ok {
		i.visitMember(operand, name)
	}
	if e.Kind() == ast.IdentKind && e.AsIdent() == "steps" && !i.seen[e.ID()] {
		i.references = append(i.references, engine.Reference{Field: i.field})
	}
	if e.Kind() == ast.CallKind {
		i.visitCall(e.AsCall())
	}
}

// visitMember looks at operand.name.
func (i *inspection) visitMember(operand ast.Expr, name string) {
	if operand.Kind() == ast.IdentKind {
		switch operand.AsIdent() {
		case "event":
			i.checkField("event."+name, name, engine.EventFields)
		case "context":
			i.checkField("context."+name, name, engine.ContextFields)
		case "steps":
			i.seen[operand.ID()] = true
			i.references = append(i.references, engine.Reference{Step: name, Field: i.field})
		}
		return
	}
	if steps, id, ok := member(operand); ok && steps.Kind() == ast.IdentKind && steps.AsIdent() == "steps" {
		i.checkField("steps."+id+"."+name, name, engine.StepFields)
	}
}

func (i *inspection) checkField(found, name string, fields []string) {
	if !slices.Contains(fields, name) {
		i.refuse(found, "one of "+strings.Join(fields, ", "))
	}
}

// member reads operand.name and operand["name"].
func member(e ast.Expr) (operand ast.Expr, name string, ok bool) {
	switch e.Kind() {
	case ast.SelectKind:
		s := e.AsSelect()
		return s.Operand(), s.FieldName(), true
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || len(call.Args()) != 2 {
			return nil, "", false
		}
		name, ok := literal(call.Args()[1])
		return call.Args()[0], name, ok
	default:
		return nil, "", false
	}
}

func literal(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}

func (i *inspection) visitCall(call ast.CallExpr) {
	args := call.Args()
	switch call.FunctionName() {
	case "join", "format":
		i.refuse("the function "+call.FunctionName(), "texts put together with +, or with placeholders in a template")
	case "matches":
		if _, fixed := literal(args[len(args)-1]); !fixed {
			i.refuse("matches with a computed pattern", "a pattern that is a literal")
		}
	case "replace":
		old, fixedOld := literal(args[0])
		replacement, fixedNew := literal(args[1])
		if !fixedOld || !fixedNew || len(replacement) > len(old) {
			i.refuse("replace with a computed or a longer text", "two literals, the second no longer than the first")
		}
	}
}

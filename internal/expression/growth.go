package expression

import (
	"maps"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// maxGrowth bounds how often the value of an expression, or of a part of it, may hold the same data.
const maxGrowth = 1000

// growth bounds how often the value of an expression holds the data that it reads. CEL's cost does not see it: forty
// times .map(x, [x, x]) cost a few hundred units, and give a value of 2^40 parts that one == walks without an end.
// variables are the bounds of the variables of the comprehensions around.
func growth(e ast.Expr, variables map[string]int) int {
	switch e.Kind() {
	case ast.IdentKind:
		return max(variables[e.AsIdent()], 1)
	case ast.SelectKind:
		return growth(e.AsSelect().Operand(), variables)
	case ast.ListKind:
		return sum(e.AsList().Elements(), variables)
	case ast.MapKind:
		total := 0
		for _, entry := range e.AsMap().Entries() {
			pair := entry.AsMapEntry()
			total = add(total, add(growth(pair.Key(), variables), growth(pair.Value(), variables)))
		}
		return max(total, 1)
	case ast.CallKind:
		return callGrowth(e.AsCall(), variables)
	case ast.ComprehensionKind:
		return comprehensionGrowth(e.AsComprehension(), variables)
	default:
		return 1
	}
}

// callGrowth: a sum holds all its parts, a choice one of them, an element no more than the list. Every other function
// gives a value of its own; what is computed on the way to it counts all the same.
func callGrowth(call ast.CallExpr, variables map[string]int) int {
	parts := call.Args()
	if call.IsMemberFunction() {
		parts = append([]ast.Expr{call.Target()}, parts...)
	}
	if call.FunctionName() == operators.Add {
		return sum(parts, variables)
	}
	most := 1
	for _, part := range parts {
		most = max(most, growth(part, variables))
	}
	return most
}

// comprehensionGrowth: each turn adds a value of the loop's step to those before, which are counted once.
func comprehensionGrowth(c ast.ComprehensionExpr, variables map[string]int) int {
	inner := maps.Clone(variables)
	if inner == nil {
		inner = make(map[string]int)
	}
	over := growth(c.IterRange(), variables)
	inner[c.IterVar()] = over
	if c.HasIterVar2() {
		inner[c.IterVar2()] = over
	}
	inner[c.AccuVar()] = growth(c.AccuInit(), variables)
	step := growth(c.LoopStep(), inner)
	inner[c.AccuVar()] = step
	return max(over, step, growth(c.LoopCondition(), inner), growth(c.Result(), inner))
}

func sum(parts []ast.Expr, variables map[string]int) int {
	total := 0
	for _, part := range parts {
		total = add(total, growth(part, variables))
	}
	return max(total, 1)
}

// add stays far from overflow.
func add(a, b int) int { return min(a+b, 1<<30) }

// cost charges for what a sum builds. CEL charges by overload, and knows none where types are found out at run time.
type cost struct{}

// CallCost implements interpreter.ActualCostEstimator.
func (cost) CallCost(function, _ string, _ []ref.Val, result ref.Val) *uint64 {
	if function != operators.Add {
		return nil
	}
	units := uint64(1)
	switch v := result.(type) {
	case types.String:
		units += uint64(len(v)) / 10
	case types.Bytes:
		units += uint64(len(v)) / 10
	case traits.Lister:
		if size, ok := v.Size().(types.Int); ok && size > 0 {
			units += uint64(size) / 10
		}
	}
	return &units
}

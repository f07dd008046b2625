package expression

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"

	"github.com/relayops/relayops/internal/engine"
)

// Limits of an expression.
const (
	// MaxSourceBytes bounds its text, in bytes.
	MaxSourceBytes = 4096
	// CostLimit bounds one evaluation, in CEL's cost units: about one for each operation and for each ten characters
	// that one looks at.
	CostLimit = 1_000_000
	// MaxStringBytes bounds each string that an expression reads, in bytes (1 MiB).
	MaxStringBytes = 1 << 20
	// maxDepth bounds how deep an expression nests.
	maxDepth = 64
	// interruptEvery is how many turns of a loop pass between looks at the context.
	interruptEvery = 100
)

// Kind is what an expression has to give.
type Kind int

// The kinds. Bool expressions decide; Any ones give a JSON value.
const (
	Any Kind = iota
	Bool
)

// Program is an expression, compiled. It is read only.
type Program struct {
	program    cel.Program
	references []engine.Reference
}

// SyntaxError says what is wrong with an expression.
type SyntaxError struct{ Found, Allowed string }

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("bad expression: found %s; allowed: %s", e.Found, e.Allowed)
}

// At is the error as the fault of a field.
func (e *SyntaxError) At(field string) engine.FieldError {
	return engine.FieldError{Field: field, Found: e.Found, Allowed: e.Allowed}
}

var environment = sync.OnceValues(func() (*cel.Env, error) {
	object := cel.MapType(cel.StringType, cel.DynType)
	return cel.NewEnv(
		cel.Variable("event", object), cel.Variable("payload", cel.DynType),
		cel.Variable("steps", object), cel.Variable("context", object),
		cel.CustomTypeAdapter(adapter{}),
		cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(MaxSourceBytes), cel.ParserRecursionLimit(maxDepth),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
		ext.Strings(), ext.Math(), ext.Encoders(),
	)
})

// Compile checks an expression that stands at a field, and prepares it. Its error is a [*SyntaxError].
func Compile(source, field string, want Kind) (*Program, error) {
	if len(source) > MaxSourceBytes {
		return nil, &SyntaxError{
			Found: fmt.Sprintf("an expression of %d bytes", len(source)), Allowed: fmt.Sprintf("at most %d", MaxSourceBytes),
		}
	}
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("set CEL up: %w", err)
	}
	ast, issues := env.Compile(source)
	if err := issues.Err(); err != nil {
		return nil, &SyntaxError{Found: "an expression that is not valid", Allowed: "CEL: " + oneLine(issues)}
	}
	if t := ast.OutputType(); want == Bool && !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, &SyntaxError{Found: "an expression that gives " + cel.FormatCELType(t), Allowed: "one that gives bool"}
	}
	read, fault := inspect(ast.NativeRep(), field)
	if fault != nil {
		return nil, fault
	}
	if times := growth(ast.NativeRep().Expr(), nil); times > maxGrowth {
		return nil, &SyntaxError{
			Found:   "an expression that could repeat its data more than a thousand times over",
			Allowed: "less nesting of map in map, or several transform nodes",
		}
	}
	program, err := env.Program(ast, cel.CostLimit(CostLimit), cel.InterruptCheckFrequency(interruptEvery),
		cel.CostTracking(cost{}), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, &SyntaxError{Found: "an expression that is not valid", Allowed: "CEL: " + err.Error()}
	}
	return &Program{program: program, references: read}, nil
}

// oneLine gives the first issues without the source, which the user has.
func oneLine(issues *cel.Issues) string {
	const most = 3
	var lines []string
	for i, issue := range issues.Errors() {
		if i == most {
			lines = append(lines, "…")
			break
		}
		message := strings.Join(strings.Fields(issue.Message), " ")
		if runes := []rune(message); len(runes) > 200 {
			message = string(runes[:200]) + "…"
		}
		lines = append(lines, fmt.Sprintf("%s (column %d)", message, issue.Location.Column()+1))
	}
	return strings.Join(lines, "; ")
}

// References are the steps that the expression reads.
func (p *Program) References() []engine.Reference { return p.references }

// Value evaluates the expression to a JSON value: nil, bool, json.Number, string, []any or map[string]any. It may
// share parts with the data. Its errors are failures with the codes expression_failed, expression_cost_exceeded and
// output_too_large; the end of ctx is an error of its own.
func (p *Program) Value(ctx context.Context, data map[string]any) (any, error) {
	out, _, err := p.program.ContextEval(ctx, data)
	if err != nil {
		return nil, failure(ctx, err)
	}
	c := converter{left: engine.MaxOutputBytes}
	return c.native(out, maxDepth)
}

// Bool evaluates an expression of kind Bool.
func (p *Program) Bool(ctx context.Context, data map[string]any) (bool, error) {
	out, _, err := p.program.ContextEval(ctx, data)
	if err != nil {
		return false, failure(ctx, err)
	}
	decided, ok := out.(types.Bool)
	if !ok {
		return false, engine.Permanent(engine.CodeExpressionFailed, fmt.Errorf("found a %s, allowed: a bool", out.Type()))
	}
	return bool(decided), nil
}

func failure(ctx context.Context, err error) error {
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		return engine.Permanent(engine.CodeExpressionCost, err)
	case ctx.Err() != nil:
		return fmt.Errorf("evaluate: %w", context.Cause(ctx))
	default:
		return engine.Permanent(engine.CodeExpressionFailed, err)
	}
}

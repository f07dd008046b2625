package expression

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/relayops/relayops/internal/engine"
)

func testData(t testing.TB) map[string]any {
	t.Helper()
	value, err := engine.DecodeJSON([]byte(`{
		"event": {"id": "e-1", "orgId": "acme", "headers": {"k": "v"}},
		"payload": {"total": 10, "price": 10.50, "whole": 10.0, "big": 18446744073709551615, "huge": 184467440737095516150,
			"far": 1e400, "name": "Ann", "tax": "12.345/01", "items": [{"q": 2, "p": 1.5}, {"q": 1, "p": 4.0}], "none": null,
			"paid": true, "a-b": 1, "date": "2026-01-02T03:04:05Z"},
		"steps": {"notify": {"output": {"id": 9}, "httpStatus": 201}, "a-b": {"output": null}},
		"context": {"attempt": 1}}`))
	if err != nil {
		t.Fatal(err)
	}
	return value.(map[string]any)
}

func TestValue(t *testing.T) {
	tests := []struct{ source, want string }{
		{`payload.total`, `10`},
		{`payload.total + 1`, `11`},
		{`payload.price * 2.0`, `21`},
		{`double(payload.total) * 1.5`, `15`},
		{`payload.whole`, `10`},
		{`payload.whole == 10`, `true`},
		{`payload.price > payload.total`, `true`},
		{`payload.big`, `18446744073709551615`},
		{`payload.huge > 1.0`, `true`},
		{`payload["a-b"]`, `1`},
		{`payload.items.map(i, double(i.q) * i.p)`, `[3,4]`},
		{`payload.items.filter(i, i.q > 1)`, `[{"p":1.5,"q":2}]`},
		{`payload.items`, `[{"p":1.5,"q":2},{"p":4.0,"q":1}]`},
		{`{"n": payload.name, "first": payload.items[0]}`, `{"first":{"p":1.5,"q":2},"n":"Ann"}`},
		{`{1: "a", true: "b"}`, `{"1":"a","true":"b"}`},
		{`has(payload.missing) ? payload.missing : "none"`, `"none"`},
		{`payload.none`, `null`},
		{`payload.name.upperAscii() + "!"`, `"ANN!"`},
		{`payload.tax.replace(".", "").replace("/", "-")`, `"12345-01"`},
		{`payload.tax.split("/")`, `["12.345","01"]`},
		{`payload.name.matches("^A")`, `true`},
		{`base64.encode(b"hi")`, `"aGk="`},
		{`b"hi"`, `"aGk="`},
		{`math.greatest(1, 2)`, `2`},
		{`timestamp(payload.date) + duration("1h")`, `"2026-01-02T04:04:05Z"`},
		{`duration("90s")`, `"90s"`},
		{`timestamp(payload.date).getFullYear()`, `2026`},
		{`event.orgId + event.headers.k`, `"acmev"`},
		{`steps.notify.output.id + steps.notify.httpStatus`, `210`},
		{`steps["a-b"].output`, `null`},
		{`context.attempt == 1`, `true`},
		{`"x\u0000y"`, `"x\ufffdy"`},
	}
	for _, test := range tests {
		program, err := Compile(test.source, "f", Any)
		if err != nil {
			t.Errorf("%s: %v", test.source, err)
			continue
		}
		value, err := program.Value(t.Context(), testData(t))
		if err != nil {
			t.Errorf("%s: %v", test.source, err)
			continue
		}
		if got, err := engine.MarshalJSON(value, 1000); err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v; want %s", test.source, got, err, test.want)
		}
	}
}

func TestBool(t *testing.T) {
	for source, want := range map[string]bool{
		`payload.total > 5 && event.orgId == "acme"`: true, `payload.paid`: true, `payload.items.exists(i, i.q > 5)`: false,
	} {
		program, err := Compile(source, "f", Bool)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got, err := program.Bool(t.Context(), testData(t)); err != nil || got != want {
			t.Errorf("%s: %v, %v", source, got, err)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	tests := []struct {
		source         string
		want           Kind
		found, allowed string
	}{
		{`payload.total >`, Bool, "an expression that is not valid", "CEL: Syntax error"},
		{`nothing > 1`, Bool, "an expression that is not valid", "undeclared reference to 'nothing'"},
		{`"a" + 1`, Any, "an expression that is not valid", "found no matching overload"},
		{``, Any, "an expression that is not valid", "Syntax error"},
		{`1 + 1`, Bool, "an expression that gives int", "one that gives bool"},
		{`payload.total + "x"`, Bool, "an expression that gives string", "one that gives bool"},
		{`event.ID == "x"`, Bool, "event.ID", "one of id, orgId"},
		{`event["ID"] == "x"`, Bool, "event.ID", "one of id, orgId"},
		{`context.try > 1`, Bool, "context.try", "one of pipeline"},
		{`steps.a.body == 1`, Bool, "steps.a.body", "one of output, outcome, branch, code, httpStatus"},
		{`["a"].join(payload.name)`, Any, "the function join", "texts put together with +"},
		{`"%s".format(["a"])`, Any, "the function format", "texts put together with +"},
		{`payload.name.matches(payload.tax)`, Bool, "matches with a computed pattern", "a literal"},
		{`payload.name.matches("(")`, Bool, "an expression that is not valid", "CEL"},
		{`payload.name.replace("", "x")`, Any, "replace with a computed or a longer text", "no longer"},
		{`payload.name.replace("a", payload.name)`, Any, "replace with a computed or a longer text", "no longer"},
		{strings.Repeat("1+", 2050) + "1", Any, "an expression of 4101 bytes", "at most 4096"},
		{strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300), Any, "an expression that is not valid", "CEL"},
		{strings.Repeat("[", 200) + strings.Repeat("]", 200), Any, "an expression that is not valid", "CEL"},
	}
	for _, test := range tests {
		_, err := Compile(test.source, "f", test.want)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Found != test.found || !strings.Contains(syntax.Allowed, test.allowed) {
			t.Errorf("%.60s: %v\nwant found %s, allowed %s", test.source, err, test.found, test.allowed)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%.60s: an error of %d bytes", test.source, len(err.Error()))
		}
	}
}

func TestFailures(t *testing.T) {
	tests := []struct {
		source string
		code   engine.Code
	}{
		{`payload.missing`, engine.CodeExpressionFailed},
		{`payload.total + payload.price`, engine.CodeExpressionFailed},
		{`payload.total / 0`, engine.CodeExpressionFailed},
		{`payload.far`, engine.CodeExpressionFailed},
		{`1.0 / 0.0`, engine.CodeExpressionFailed},
		{`payload.items[5]`, engine.CodeExpressionFailed},
		{`type(payload)`, engine.CodeExpressionFailed},
		{`payload.name.size() > 0 ? steps.nobody.output : null`, engine.CodeExpressionFailed},
		{`["` + strings.Repeat("a", 3000) + `"]` + strings.Repeat(".map(b, b + b + b + b)", 4) +
			strings.Repeat(".map(b, b.size() > 1000 ? b : b)", 4), ""},
		{`[payload.doc, payload.doc, payload.doc, payload.doc].map(b, b + b + b + b + b + b + b + b)`, engine.CodeExpressionCost},
		{`[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, [1,2,3,4,5,6,7,8,9,10].map(d,
			[1,2,3,4,5,6,7,8,9,10].map(e, [1,2,3,4,5,6,7,8,9,10].map(f, f))))))`, engine.CodeExpressionCost},
		{`payload.wide.map(a, payload.wide).map(b, b + b)`, engine.CodeOutputTooLarge},
	}
	data := testData(t)
	data["payload"].(map[string]any)["doc"] = strings.Repeat("x", MaxStringBytes)
	data["payload"].(map[string]any)["wide"] = make([]any, 700)
	for _, test := range tests {
		program, err := Compile(test.source, "f", Any)
		if err != nil {
			t.Errorf("%.60s: %v", test.source, err)
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = program.Value(t.Context(), data)
		runtime.ReadMemStats(&after)
		if test.code == "" {
			if err != nil {
				t.Errorf("%.60s: %v", test.source, err)
			}
			continue
		}
		var failure *engine.Failure
		if !errors.As(err, &failure) || failure.Code != test.code || failure.Class != engine.ClassDeadLetter {
			t.Errorf("%.60s: %v, want %s", test.source, err, test.code)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 512<<20 {
			t.Errorf("%.60s: %d MiB allocated", test.source, allocated>>20)
		}
	}
	program, err := Compile(`payload.name`, "f", Bool)
	if err != nil {
		t.Fatal(err)
	}
	var failure *engine.Failure
	if _, err := program.Bool(t.Context(), testData(t)); !errors.As(err, &failure) || failure.Code != engine.CodeExpressionFailed {
		t.Errorf("a string for a bool: %v", err)
	}
}

// Values that hold the same data again and again cost CEL little to make, and for ever to compare.
func TestGrowthIsBounded(t *testing.T) {
	refused := []string{
		`[payload]` + strings.Repeat(".map(b, [b, b])", 40) + ` == [payload]`,
		`[payload.items]` + strings.Repeat(".map(b, b + b)", 40),
		`[payload.name]` + strings.Repeat(".map(b, b + b)", 40),
		`[payload]` + strings.Repeat(`.map(b, {"x": b, "y": b})`, 30) + `.exists(x, x == payload)`,
		`[payload].map(a, [[a, a, a, a, a, a, a, a, a, a, a]].map(b, [[b, b, b, b, b, b, b, b, b, b]].map(c, [c, c, c, c, c, c, c, c, c, c])))`,
		`payload in [payload]` + strings.Repeat(".map(b, true ? dyn([b, b]) : dyn(b))", 40),
		`[payload]` + strings.Repeat(".map(b, [b, b].filter(c, true))", 40),
		`[payload]` + strings.Repeat(".map(b, [b, b])", 40) + `.size() > 0`,
	}
	for _, source := range refused {
		_, err := Compile(source, "f", Any)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(syntax.Found, "thousand times") {
			t.Errorf("%.80s: %v", source, err)
		}
	}
	allowed := []string{
		`payload.items.filter(i, i.q > 1).map(i, {"a": i.q, "b": i.p, "c": i.s, "d": i.t}).map(j, {"x": j.a, "y": j.b, "z": [j.c, j.d]})`,
		`payload.a.all(a, payload.b.all(b, payload.c.exists(c, a == b && b == c)))`,
		`payload.items.map(i, i.tags.map(t, t.name + "/" + t.value))`,
		strings.Repeat(`payload.name + " " + `, 25) + `""`,
	}
	for _, source := range allowed {
		if _, err := Compile(source, "f", Any); err != nil {
			t.Errorf("%.80s: %v", source, err)
		}
	}
}

func TestLongStringsAreNotRead(t *testing.T) {
	program, err := Compile(`payload.doc.size() > 1`, "f", Bool)
	if err != nil {
		t.Fatal(err)
	}
	for size, code := range map[int]engine.Code{MaxStringBytes: "", MaxStringBytes + 1: engine.CodeExpressionFailed} {
		_, err := program.Bool(t.Context(), map[string]any{"payload": map[string]any{"doc": strings.Repeat("x", size)}})
		var failure *engine.Failure
		if errors.As(err, &failure); (failure == nil) != (code == "") || failure != nil && failure.Code != code {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// The end of the step's time ends an evaluation, and is the engine's to classify.
func TestContextEndsAnEvaluation(t *testing.T) {
	program, err := Compile(`payload.list.all(a, payload.list.all(b, payload.list.all(c, a + b + c >= 0)))`, "f", Bool)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]any, 90)
	for i := range list {
		list[i] = int64(i)
	}
	cause := errors.New("step timeout")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	began := time.Now()
	_, err = program.Bool(ctx, map[string]any{"payload": map[string]any{"list": list}})
	var failure *engine.Failure
	if !errors.Is(err, cause) || errors.As(err, &failure) {
		t.Errorf("error %v, want the context's cause", err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("ended after %s", took)
	}
}

func TestReferences(t *testing.T) {
	tests := map[string][]string{
		`payload.x`:                                       nil,
		`steps.notify.output.id`:                          {"notify"},
		`steps["a-b"].output == steps.b.output`:           {"a-b", "b"},
		`has(steps.a.output.x) ? steps.a.output.x : 0`:    {"a", "a"},
		`steps[payload.which].output`:                     {""},
		`steps.map(s, steps[s].outcome)`:                  {"", ""},
		`payload.list.exists(x, x == steps.a.httpStatus)`: {"a"},
	}
	for source, want := range tests {
		program, err := Compile(source, "expression", Any)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		var got []string
		for _, reference := range program.References() {
			if reference.Field != "expression" {
				t.Errorf("%s: field %s", source, reference.Field)
			}
			got = append(got, reference.Step)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: reads %q, want %q", source, got, want)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{`payload.a > 1`, `steps["x"].output`, `[1].map(a, a)`, `{"a": 1}.a`, `"x".replace("a", "")`} {
		f.Add(seed)
	}
	data := map[string]any{"event": map[string]any{}, "payload": map[string]any{"a": int64(1)}, "steps": map[string]any{}, "context": map[string]any{}}
	f.Fuzz(func(t *testing.T, source string) {
		began := time.Now()
		program, err := Compile(source, "f", Any)
		if err == nil {
			_, err = program.Value(t.Context(), data)
		}
		var failure *engine.Failure
		var syntax *SyntaxError
		if err != nil && !errors.As(err, &failure) && !errors.As(err, &syntax) {
			t.Fatalf("%q: %v", source, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("%q took %s", source, took)
		}
	})
}

func BenchmarkBool(b *testing.B) {
	program, err := Compile(`payload.total > 5 && event.orgId == "acme"`, "f", Bool)
	if err != nil {
		b.Fatal(err)
	}
	data := testData(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := program.Bool(b.Context(), data); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleProgram_Value() {
	program, err := Compile(`payload.items.map(i, double(i.quantity) * i.price)`, "expression", Any)
	if err != nil {
		fmt.Println(err)
		return
	}
	payload, err := engine.DecodeJSON([]byte(`{"items": [{"quantity": 2, "price": 1.5}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(program.Value(context.Background(), map[string]any{"payload": payload}))
	// Output: [3] <nil>
}

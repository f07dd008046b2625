package placeholder

import (
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/relayops/relayops/internal/engine"
)

func testData(t testing.TB) map[string]any {
	t.Helper()
	value, err := engine.DecodeJSON([]byte(`{
		"event": {"id": "e-1", "orgId": "acme", "headers": {"x-y": "h"}, "payload": {"orderNumber": "A-1"}},
		"payload": {"orderNumber": "A-1", "order": {"totalAmount": 123456789012345678901.50, "total.amount": 7, "coupon": null},
			"items": [{"sku": "a"}, {"sku": "b"}], "paid": true, "event": "mine", "0": "zero", "açúcar": "doce", "q\"k": 1},
		"steps": {"notify-erp": {"output": {"id": 9}, "outcome": "SUCCEEDED"}},
		"context": {"attempt": 2, "pipeline": "dev/default/orders"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return value.(map[string]any)
}

func TestTextValue(t *testing.T) {
	tests := []struct{ text, want string }{
		// A lone placeholder keeps its type.
		{`{{orderNumber}}`, `"A-1"`},
		{`{{ order.totalAmount }}`, `123456789012345678901.50`},
		{`{{order}}`, `{"coupon":null,"total.amount":7,"totalAmount":123456789012345678901.50}`},
		{`{{paid}}`, `true`},
		{`{{order.coupon}}`, `null`},
		{`{{items[1].sku}}`, `"b"`},
		{`{{items.1.sku}}`, `"b"`},
		{`{{items}}`, `[{"sku":"a"},{"sku":"b"}]`},
		{`{{order["total.amount"]}}`, `7`},
		{`{{payload["q\"k"]}}`, `1`},
		{`{{açúcar}}`, `"doce"`},
		{`{{payload.0}}`, `"zero"`},
		{`{{payload.event}}`, `"mine"`},
		{`{{event.id}}`, `"e-1"`},
		{`{{event.headers["x-y"]}}`, `"h"`},
		{`{{event.headers.x-y}}`, `"h"`},
		{`{{event.payload.orderNumber}}`, `"A-1"`},
		{`{{steps.notify-erp.output.id}}`, `9`},
		{`{{steps["notify-erp"].outcome}}`, `"SUCCEEDED"`},
		{`{{context.attempt}}`, `2`},
		{`{{nothing?}}`, `null`},
		{`{{order.nothing.deeper?}}`, `null`},
		{`{{orderNumber?}}`, `"A-1"`},
		// With text around it, it is formatted.
		{`n {{orderNumber}}!`, `"n A-1!"`},
		{`{{orderNumber}}{{order.totalAmount}}`, `"A-1123456789012345678901.50"`},
		{`{"a":{{order}}}`, `"{\"a\":{\"coupon\":null,\"total.amount\":7,\"totalAmount\":123456789012345678901.50}}"`},
		{` {{paid}}`, `" true"`},
		{`<{{order.coupon}}>`, `"<null>"`},
		{`<{{order.coupon?}}>`, `"<>"`},
		{`<{{nothing?}}>`, `"<>"`},
		// Literals.
		{``, `""`},
		{`{{{{orderNumber}}`, `"{{orderNumber}}"`},
		{`{{{{{{orderNumber}}`, `"{{A-1"`},
		{`}} { } {`, `"}} { } {"`},
	}
	for _, test := range tests {
		text, err := ParseText(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		value, err := text.Value(testData(t), 1000)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if got, err := engine.MarshalJSON(value, 1000); err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v; want %s", test.text, got, err, test.want)
		}
	}
}

func TestTextUnset(t *testing.T) {
	for _, source := range []string{
		`{{nothing}}`, `x {{nothing}}`, `{{order.nothing}}`, `{{orderNumber.length}}`, `{{items[2]}}`, `{{items.sku}}`,
		`{{items[99999999999]}}`, `{{order.coupon.code}}`, `{{payload[0]}}`, `{{steps.other.output}}`, `{{items["0"]}}`,
	} {
		text, err := ParseText(source)
		if err != nil {
			if strings.Contains(source, "99999") {
				continue
			}
			t.Errorf("%s: %v", source, err)
			continue
		}
		_, err = text.Value(testData(t), 1000)
		var failure *engine.Failure
		if !errors.As(err, &failure) || failure.Code != engine.CodePlaceholderUnset || failure.Class != engine.ClassDeadLetter {
			t.Errorf("%s: %v, want placeholder_unset", source, err)
		}
	}
}

func TestParseTextRefuses(t *testing.T) {
	tests := []struct{ text, found, allowed string }{
		{`{{}}`, `{{}}`, `after {{: a name; {{{{ stands for a literal {{`},
		{`a {{ `, `{{ `, `after {{ : a name; {{{{ stands for a literal {{`},
		{`{{order`, `{{order`, `after {{order: '.', '[', '?' or '}}'`},
		{`{{order}`, `{{order}`, `after {{order: '.', '[', '?' or '}}'`},
		{`{{order..total}}`, `{{order..total}}`, `after {{order.: a name; {{{{ stands for a literal {{`},
		{`{{1st}}`, `{{1st}}`, `after {{: a name; {{{{ stands for a literal {{`},
		{`{{a b}}`, `{{a b}}`, `after {{a : '.', '[', '?' or '}}'`},
		{`{{a | upper}}`, `{{a | upper}}`, `after {{a : '.', '[', '?' or '}}'`},
		{`{{a[}}`, `{{a[}}`, `after {{a[: [0] or ["name"]`},
		{`{{a[-1]}}`, `{{a[-1]}}`, `after {{a[: [0] or ["name"]`},
		{`{{a[01]}}`, `{{a[01]}}`, `after {{a[01: [0] or ["name"]`},
		{`{{a["x]}}`, `{{a["x]}}`, `after {{a["x]}}: ["name"], with the name as a JSON string`},
		{`{{a["\`, `{{a["\\`, `after {{a["\\: ["name"], with the name as a JSON string`},
		{`{{a[""]}}`, `{{a[""]}}`, `after {{a["": ["name"], with the name as a JSON string`},
		{`{{event.ID}}`, `{{event.ID}}`, `below event, one of id, orgId, eventType, eventVersion, aggregateType, aggregateId, correlationId, causationId, occurredAt, headers, payload`},
		{`{{event.id.x}}`, `{{event.id.x}}`, `nothing below id, which is a plain value`},
		{`{{context.try}}`, `{{context.try}}`, `below context, one of pipeline, executionId, nodeId, idempotencyKey, operationVersion, attempt, maxAttempts`},
		{`{{steps.a.body}}`, `{{steps.a.body}}`, `below steps, one of output, outcome, branch, code, httpStatus`},
		{`{{` + strings.Repeat("a.", 40) + `b}}`, `{{a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.…`, `at most 32 segments and 512 bytes`},
		{`{{` + strings.Repeat("a", 600) + `}}`, `{{` + strings.Repeat("a", 40) + `…`, `at most 32 segments and 512 bytes`},
	}
	for _, test := range tests {
		_, err := ParseText(test.text)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Found != test.found || syntax.Allowed != test.allowed {
			t.Errorf("%.60s: %#v\nwant found %s, allowed %s", test.text, err, test.found, test.allowed)
		}
	}
}

func TestTemplate(t *testing.T) {
	document, err := engine.DecodeJSON([]byte(`{"number": "{{orderNumber}}", "total": "{{order.totalAmount}}", "n": 1.0,
		"list": ["{{items[0].sku}}", "x", {"deep": "no. {{orderNumber}}"}], "fixed": {"a": ["{{{{b}}"]}, "none": null,
		"by": "{{steps.notify-erp.output.id}} {{steps.first.outcome?}}"}`))
	if err != nil {
		t.Fatal(err)
	}
	template, faults := Parse(document, "body")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for range 2 { // A template is not used up.
		value, err := template.Render(testData(t), 1000)
		if err != nil {
			t.Fatal(err)
		}
		got, err := engine.MarshalJSON(value, 1000)
		want := `{"by":"9 ","fixed":{"a":["{{b}}"]},"list":["a","x",{"deep":"no. A-1"}],"n":1.0,"none":null,` +
			`"number":"A-1","total":123456789012345678901.50}`
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v\nwant %s", got, err, want)
		}
	}
	want := []engine.Reference{{Step: "notify-erp", Field: "body.by"}, {Step: "first", Field: "body.by"}}
	if !reflect.DeepEqual(template.References(), want) {
		t.Errorf("references %v, want %v", template.References(), want)
	}
}

func TestTemplateReportsEveryFault(t *testing.T) {
	document := map[string]any{
		"a": []any{"{{", "ok", "{{x..y}}"}, "{{key}}": "x", "b c": "{{steps}} {{event.nope}}",
	}
	_, faults := Parse(document, "body")
	var got []string
	for _, fault := range faults {
		got = append(got, fault.Field+": "+fault.Found)
	}
	want := []string{
		`body.a[0]: the placeholder {{`, `body.a[2]: the placeholder {{x..y}}`,
		`body["b c"]: the placeholder {{event.nope}}`, `body["{{key}}"]: {{ in a field's name`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// A template that repeats a large value is stopped before it has been built.
func TestTemplateIsBounded(t *testing.T) {
	data := map[string]any{"payload": map[string]any{"big": strings.Repeat("x", 1<<20), "list": []any{strings.Repeat("y", 1<<20)}}}
	for _, source := range []string{strings.Repeat("{{big}} ", 5000), strings.Repeat("{{list}} ", 5000)} {
		for _, document := range []any{source, []any{source, "x"}, strings.Split(source, " ")[0] + "x"} {
			template, faults := Parse(document, "")
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			value, err := template.Render(data, 1<<20)
			runtime.ReadMemStats(&after)
			allocated := after.TotalAlloc - before.TotalAlloc
			var failure *engine.Failure
			if !errors.As(err, &failure) || failure.Code != engine.CodeOutputTooLarge {
				t.Errorf("rendered %d bytes, %v", len(value.(string)), err)
			}
			if allocated > 8<<20 {
				t.Errorf("%d bytes allocated for at most 1 MiB", allocated)
			}
		}
	}
}

// What a placeholder brings in is not read for placeholders.
func TestValuesAreNotTemplates(t *testing.T) {
	data := map[string]any{"payload": map[string]any{"a": "{{b}} {{{{", "b": "secret"}}
	for source, want := range map[string]string{`{{a}}`: `{{b}} {{{{`, `x{{a}}`: `x{{b}} {{{{`} {
		text, err := ParseText(source)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := text.Value(data, 100); err != nil || got != want {
			t.Errorf("%s: %v, %v", source, got, err)
		}
	}
}

func TestEscapeRoundTrip(t *testing.T) {
	texts := rapid.OneOf(rapid.String(), rapid.StringMatching(`[{}a ]{0,20}`))
	rapid.Check(t, func(t *rapid.T) {
		before, after := texts.Draw(t, "before"), texts.Draw(t, "after")
		text, err := ParseText(Escape(before))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := text.Fill(nil, 1000); err != nil || got != before || !text.IsLiteral() {
			t.Fatalf("%q came back as %q, %v", before, got, err)
		}
		// An escaped text can stand beside a placeholder, as long as no brace of its own touches the placeholder's.
		before = strings.TrimRight(before, "{")
		text, err = ParseText(Escape(before) + "{{x}}" + Escape(after))
		if err != nil {
			t.Fatal(err)
		}
		got, err := text.Fill(map[string]any{"payload": map[string]any{"x": json.Number("1.50")}}, 1000)
		if err != nil || got != before+"1.50"+after {
			t.Fatalf("%q{{x}}%q gave %q, %v", before, after, got, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{{a}}`, `{{a.b[0]["c\"d"].1?}} {{{{ }}`, `{{steps.a-b.output}}`, `{{event.id}}`, `{{a["\`, `{{é}}`, "{{\xff}}", `{{ a }}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		text, err := ParseText(source)
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Allowed == "" || len(syntax.Found) > 400 {
				t.Fatalf("%q: %#v", source, err)
			}
			return
		}
		text.References("field")
		_, err = text.Value(testData(t), 100)
		var failure *engine.Failure
		if err != nil && !errors.As(err, &failure) {
			t.Fatalf("%q: %v", source, err)
		}
		if literal, err := ParseText(Escape(source)); err != nil || !literal.IsLiteral() {
			t.Fatalf("%q escaped is not literal: %v", source, err)
		}
	})
}

func BenchmarkRender(b *testing.B) {
	document, _ := engine.DecodeJSON([]byte(`{"number": "{{orderNumber}}", "total": "{{order.totalAmount}}"}`))
	template, _ := Parse(document, "body")
	data := testData(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := template.Render(data, 1000); err != nil {
			b.Fatal(err)
		}
	}
}

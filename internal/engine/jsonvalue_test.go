package engine

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMarshalJSONGivesWhatJsonbCanHold(t *testing.T) {
	tests := []struct {
		value any
		want  string
	}{
		{nil, "null"},
		{"<a&b>", `"<a&b>"`},
		{"a\x00b", `"a\ufffdb"`},
		{`a\u0000b`, `"a\\u0000b"`},
		{"\\\x00", `"\\\ufffd"`},
		{"\xff", `"\ufffd"`},
		{json.Number("12345678901234567890.10"), "12345678901234567890.10"},
		{map[string]any{"b": []any{true, json.Number("1e3")}, "a": 1}, `{"a":1,"b":[true,1e3]}`},
		{struct{ A string }{"x"}, `{"A":"x"}`},
		{json.RawMessage(` {"a" : "\u0000"}`), `{"a":"\ufffd"}`},
	}
	for _, test := range tests {
		got, err := MarshalJSON(test.value, 1000)
		if err != nil || string(got) != test.want {
			t.Errorf("%#v: %s, %v; want %s", test.value, got, err, test.want)
		}
	}
}

func TestMarshalJSONRefusesWhatIsTooLarge(t *testing.T) {
	deep := any("x")
	for range maxOutputDepth + 1 {
		deep = []any{deep}
	}
	// A value that refers to itself a million times over is refused before it is built.
	bomb := any(strings.Repeat("x", 100))
	for range 40 {
		bomb = []any{bomb, bomb}
	}
	for name, value := range map[string]any{
		"long": strings.Repeat("x", 999), "escaped": strings.Repeat("\x00", 200), "deep": deep, "bomb": bomb,
		"number": json.Number("1e1000"), "small number": json.Number("1e-2000"), "endless": json.Number("1e99999999999999999999"),
		"raw": json.RawMessage(`[1e5000]`),
	} {
		if text, err := MarshalJSON(value, 1000); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %d bytes, %v; want ErrTooLarge", name, len(text), err)
		}
	}
	if _, err := MarshalJSON(make(chan int), 1000); err == nil || errors.Is(err, ErrTooLarge) {
		t.Errorf("a channel: %v", err)
	}
}

func jsonValue() *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any { return drawJSON(t, 3) })
}

func drawJSON(t *rapid.T, depth int) any {
	kinds := 4
	if depth > 0 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.String().Draw(t, "string")
	case 3:
		return json.Number(rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,9})?`).Draw(t, "number"))
	case 4:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range list {
			list[i] = drawJSON(t, depth-1)
		}
		return list
	default:
		object := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			object[rapid.String().Draw(t, "key")] = drawJSON(t, depth-1)
		}
		return object
	}
}

// The measure that stops early never stops what would fit.
func TestMeasureIsNeverMoreThanTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := jsonValue().Draw(t, "value")
		text, err := MarshalJSON(value, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := MarshalJSON(value, len(text)); err != nil || string(again) != string(text) {
			t.Fatalf("%s does not fit into its own %d bytes: %v", text, len(text), err)
		}
		decoded, err := DecodeJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := MarshalJSON(decoded, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := DecodeJSON(again); err != nil || !reflect.DeepEqual(twice, decoded) {
			t.Fatalf("%s came back as %s, %v", text, again, err)
		}
	})
}

func TestDecodeJSONTakesOneDocument(t *testing.T) {
	for _, text := range []string{``, `{`, `1 2`, `{} x`} {
		if value, err := DecodeJSON([]byte(text)); err == nil {
			t.Errorf("%q: %v", text, value)
		}
	}
}

package expression

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/relayops/relayops/internal/engine"
)

// adapter gives CEL values for JSON ones, lazily: nothing of a payload that is not read is touched.
type adapter struct{}

// NativeToValue implements types.Adapter.
func (a adapter) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case json.Number:
		return numberValue(string(v))
	case string:
		if len(v) > MaxStringBytes {
			return types.NewErr("a string of %d bytes; allowed: at most %d", len(v), MaxStringBytes)
		}
		return types.String(v)
	case map[string]any:
		return dataMap{types.NewStringInterfaceMap(a, v), v}
	case []any:
		return dataList{types.NewDynamicList(a, v), v}
	default:
		return types.DefaultTypeAdapter.NativeToValue(value)
	}
}

// dataMap and dataList are parts of the data as they are, which need no conversion on the way back.
type (
	dataMap struct {
		traits.Mapper
		plain map[string]any
	}
	dataList struct {
		traits.Lister
		plain []any
	}
)

func numberValue(number string) ref.Val {
	if !strings.ContainsAny(number, ".eE") {
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			return types.Int(n)
		}
		if n, err := strconv.ParseUint(number, 10, 64); err == nil {
			return types.Uint(n)
		}
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return types.NewErr("a number beyond the range of a double")
	}
	return types.Double(f)
}

// converter gives JSON values for CEL ones. A list may hold the same part a million times, so it stops when it has
// made more elements than an output can have bytes.
type converter struct{ left int }

func (c *converter) native(value ref.Val, depth int) (any, error) {
	if c.left--; c.left < 0 || depth < 0 {
		return nil, engine.Permanent(engine.CodeOutputTooLarge, fmt.Errorf("the expression's value is too large"))
	}
	switch v := value.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return json.Number(strconv.FormatInt(int64(v), 10)), nil
	case types.Uint:
		return json.Number(strconv.FormatUint(uint64(v), 10)), nil
	case types.Double:
		return doubleNumber(float64(v))
	case types.String:
		return string(v), nil
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(v), nil
	case types.Timestamp, types.Duration:
		return textOf(v)
	case dataMap:
		return v.plain, nil
	case dataList:
		return v.plain, nil
	case traits.Mapper:
		return c.object(v, depth)
	case traits.Lister:
		return c.list(v, depth)
	default:
		return nil, notJSON("a value of type " + value.Type().TypeName())
	}
}

func (c *converter) object(m traits.Mapper, depth int) (any, error) {
	object := make(map[string]any)
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, err := textOf(key)
		if err != nil {
			return nil, err
		}
		if object[name], err = c.native(m.Get(key), depth-1); err != nil {
			return nil, err
		}
	}
	return object, nil
}

func (c *converter) list(l traits.Lister, depth int) (any, error) {
	list := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		element, err := c.native(it.Next(), depth-1)
		if err != nil {
			return nil, err
		}
		list = append(list, element)
	}
	return list, nil
}

func doubleNumber(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, notJSON("a double that JSON has no number for")
	}
	text, err := json.Marshal(f)
	return json.Number(text), err
}

func textOf(v ref.Val) (string, error) {
	text, ok := v.ConvertToType(types.StringType).(types.String)
	if !ok {
		return "", notJSON("a value without a text form")
	}
	return string(text), nil
}

func notJSON(found string) error {
	return engine.Permanent(engine.CodeExpressionFailed, fmt.Errorf("found %s; allowed: a JSON value", found))
}

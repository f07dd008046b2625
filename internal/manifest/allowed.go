package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// fault turns an error of the API server's code into a problem: what was found comes from the object, what is allowed
// from the schema. A CEL rule of ours says both in its message.
func (c *checking) fault(fault *field.Error) {
	path := fault.Field
	if path == nilField {
		path = ""
	}
	if found, allowed, isRule := strings.Cut(fault.Detail, "; allowed: "); isRule && strings.HasPrefix(found, "found ") {
		c.add(path, clip(strings.TrimPrefix(found, "found ")), allowed)
		return
	}
	if fault.Type == field.ErrorTypeDuplicate {
		c.duplicate(path)
		return
	}
	at, value, exists := resolvePath(c.definition.structural, c.object, path)
	allowed := clip(fault.Detail)
	if at != nil {
		allowed = allowedBy(at)
	}
	found := "nothing"
	switch {
	case exists && overlong(at, value):
		found = fmt.Sprintf("%d characters", len([]rune(value.(string))))
	case exists && overfull(at, value) != "":
		found = overfull(at, value)
	case exists:
		found = describe(value)
	}
	c.add(path, found, allowed)
}

func overlong(at *schema.Structural, value any) bool {
	text, isText := value.(string)
	return isText && at != nil && at.ValueValidation != nil && at.ValueValidation.MaxLength != nil &&
		int64(len([]rune(text))) > *at.ValueValidation.MaxLength
}

// overfull counts what a list or an object holds where that is the fault.
func overfull(at *schema.Structural, value any) string {
	if at == nil || at.ValueValidation == nil {
		return ""
	}
	switch value := value.(type) {
	case []any:
		if most := at.ValueValidation.MaxItems; most != nil && int64(len(value)) > *most {
			return fmt.Sprintf("%d items", len(value))
		}
	case map[string]any:
		if most := at.ValueValidation.MaxProperties; most != nil && int64(len(value)) > *most {
			return fmt.Sprintf("%d fields", len(value))
		}
	}
	return ""
}

// duplicate reports an element whose key, or value, an earlier element of its list has.
func (c *checking) duplicate(path string) {
	list := path
	if i := strings.LastIndex(path, "["); i >= 0 {
		list = path[:i]
	}
	if at, _, _ := resolvePath(c.definition.structural, nil, list); at != nil && len(at.XListMapKeys) == 1 {
		path += "." + at.XListMapKeys[0]
	}
	_, value, _ := resolvePath(c.definition.structural, c.object, path)
	c.add(path, describe(value)+" a second time", "each once")
}

// unknownField reports a field that the schema does not have, with those that it has.
func (c *checking) unknownField(path string) {
	parent, _ := splitLast(path)
	allowed := "the fields of this kind"
	if at, _, _ := resolvePath(c.definition.structural, nil, parent); at != nil && len(at.Properties) > 0 {
		allowed = list(slices.Sorted(maps.Keys(at.Properties)))
	}
	c.add(path, "a field that does not exist", allowed)
}

func splitLast(path string) (parent, last string) {
	if i := strings.LastIndex(path, "."); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// resolvePath finds the schema and the value at a path. Either may be missing.
func resolvePath(root *schema.Structural, object any, path string) (at *schema.Structural, value any, exists bool) {
	at, value, exists = root, object, object != nil
	steps := pathStep.FindAllString(path, -1)
	for i := 0; i < len(steps); i++ {
		key, isIndex := strings.CutPrefix(steps[i], "[")
		key = strings.TrimSuffix(key, "]")
		if !isIndex && at != nil && at.Properties == nil && at.AdditionalProperties != nil {
			// The key of a map may hold dots: it goes on to the end of the path.
			key = strings.Join(steps[i:], ".")
			i = len(steps)
		}
		at = childSchema(at, key)
		value, exists = childValue(value, key)
	}
	return at, value, exists
}

func childSchema(at *schema.Structural, key string) *schema.Structural {
	switch {
	case at == nil:
		return nil
	case at.Items != nil:
		return at.Items
	case at.Properties != nil:
		if child, known := at.Properties[key]; known {
			return &child
		}
		return nil
	case at.AdditionalProperties != nil:
		return at.AdditionalProperties.Structural
	default:
		return nil
	}
}

func childValue(value any, key string) (any, bool) {
	switch value := value.(type) {
	case map[string]any:
		child, exists := value[key]
		return child, exists
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(value) {
			return value[i], true
		}
	}
	return nil, false
}

// allowedBy is a schema in words.
func allowedBy(at *schema.Structural) string {
	limits := at.ValueValidation
	if limits == nil {
		limits = &schema.ValueValidation{}
	}
	switch {
	case at.XIntOrString:
		return "a number of bytes, such as 65536, 512Ki or 10Gi"
	case len(limits.Enum) > 0:
		values := make([]string, len(limits.Enum))
		for i, value := range limits.Enum {
			values[i] = fmt.Sprint(value.Object)
		}
		return list(values)
	}
	switch at.Type {
	case "string":
		return allowedString(limits)
	case "integer", "number":
		return "an " + strings.TrimPrefix(at.Type, "an ") + span(limits.Minimum, limits.Maximum)
	case "array":
		if limits.MinItems == nil && limits.MaxItems == nil {
			return "a list"
		}
		return "a list" + span(limits.MinItems, limits.MaxItems) + " items"
	case "object":
		if len(limits.Required) > 0 {
			return "an object with " + strings.Join(limits.Required, ", ")
		}
		if limits.MaxProperties != nil {
			return fmt.Sprintf("an object with at most %d fields", *limits.MaxProperties)
		}
		return "an object"
	case "boolean":
		return "true or false"
	default:
		return "a value"
	}
}

func allowedString(limits *schema.ValueValidation) string {
	switch {
	case limits.Format == "date-time":
		return "a time, such as 2026-01-31T12:00:00Z"
	case limits.Pattern == durationPattern:
		return "a duration, such as 500ms, 2s or 1h30m"
	}
	allowed := "a string" + span(limits.MinLength, limits.MaxLength) + " characters"
	if limits.MinLength == nil && limits.MaxLength == nil {
		allowed = "a string"
	}
	if limits.Pattern != "" {
		allowed += " that matches " + limits.Pattern
	}
	return allowed
}

const durationPattern = `^([0-9]{1,5}(\.[0-9]{1,3})?(ms|s|m|h))+$`

func span[T int64 | float64](least, most *T) string {
	switch {
	case least != nil && most != nil:
		return fmt.Sprintf(" of %v to %v", *least, *most)
	case most != nil:
		return fmt.Sprintf(" of at most %v", *most)
	case least != nil:
		return fmt.Sprintf(" of at least %v", *least)
	default:
		return ""
	}
}

// list joins alternatives.
func list(values []string) string {
	if len(values) < 2 {
		return strings.Join(values, "")
	}
	return strings.Join(values[:len(values)-1], ", ") + " or " + values[len(values)-1]
}

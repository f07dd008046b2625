package engine

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// compiledSchemas holds each node type's schema compiled once, by its text: there are as many as node types.
var compiledSchemas sync.Map

func schemaOf(nodeType Type) (*jsonschema.Schema, error) {
	text := nodeType.Schema()
	if schema, known := compiledSchemas.Load(string(text)); known {
		return schema.(*jsonschema.Schema), nil
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("schema of node type %s: %w", nodeType.Name(), err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{}) // A schema refers to nothing outside itself.
	url := "node:" + nodeType.Name()
	if err := compiler.AddResource(url, document); err != nil {
		return nil, fmt.Errorf("schema of node type %s: %w", nodeType.Name(), err)
	}
	schema, err := compiler.Compile(url)
	if err != nil {
		return nil, fmt.Errorf("schema of node type %s: %w", nodeType.Name(), err)
	}
	compiledSchemas.Store(string(text), schema)
	return schema, nil
}

// schemaFaults holds a config against its type's schema: every fault, in no order. A value is never
// repeated, save one of an enumeration: it might be a secret.
func schemaFaults(nodeType Type, document any) FieldErrors {
	schema, err := schemaOf(nodeType)
	if err != nil {
		return FieldErrors{{Found: "a node type whose schema is broken", Allowed: err.Error()}}
	}
	var refused *jsonschema.ValidationError
	if !errors.As(schema.Validate(document), &refused) {
		return nil
	}
	reader := schemaReader{root: schema, document: document}
	reader.leaves(refused)
	return reader.faults
}

type schemaReader struct {
	root     *jsonschema.Schema
	document any
	faults   FieldErrors
}

func (r *schemaReader) leaves(e *jsonschema.ValidationError) {
	switch e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, cause := range e.Causes {
			r.leaves(cause)
		}
	default:
		r.leaf(e)
	}
}

func (r *schemaReader) leaf(e *jsonschema.ValidationError) {
	location := e.InstanceLocation
	if refused, isName := e.ErrorKind.(*kind.PropertyNames); isName {
		location = r.objectOf(refused.Property, e.SchemaURL, r.document, nil)
	}
	field := fieldPath(location)
	schema := schemaAt(r.root, location)
	add := func(field, found, allowed string) {
		r.faults = append(r.faults, FieldError{Field: field, Found: found, Allowed: allowed})
	}
	described := func(otherwise string) string {
		if schema != nil && schema.Description != "" {
			return schema.Description
		}
		return otherwise
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		allowed := make([]string, len(k.Want))
		for i, want := range k.Want {
			allowed[i] = article(want)
		}
		add(field, article(k.Got), strings.Join(allowed, " or "))
	case *kind.Enum:
		allowed := make([]string, len(k.Want))
		for i, want := range k.Want {
			allowed[i] = fmt.Sprint(want)
		}
		add(field, quote(fmt.Sprint(k.Got))+didYouMean(fmt.Sprint(k.Got), allowed), list(allowed))
	case *kind.Required:
		for _, missing := range k.Missing {
			below := schemaAt(r.root, append(slices.Clone(e.InstanceLocation), missing))
			allowed := "a value: it is required"
			if below != nil && below.Description != "" {
				allowed = below.Description + " (required)"
			}
			add(JoinField(field, fieldPath([]string{missing})), "nothing", allowed)
		}
	case *kind.AdditionalProperties:
		names := propertyNames(schema)
		for _, name := range k.Properties {
			add(JoinField(field, fieldPath([]string{name})), "an unknown field"+didYouMean(name, names), list(names))
		}
	case *kind.PropertyNames:
		allowed := "another name"
		if schema != nil && schema.PropertyNames != nil && schema.PropertyNames.Description != "" {
			allowed = schema.PropertyNames.Description
		}
		add(KeyField(field, k.Property), "a field of that name", allowed)
	case *kind.Pattern:
		add(field, fmt.Sprintf("a string of %d characters that does not fit", len([]rune(k.Got))),
			described("a string that matches "+k.Want))
	case *kind.MinLength:
		add(field, fmt.Sprintf("%d characters", k.Got), fmt.Sprintf("at least %d", k.Want))
	case *kind.MaxLength:
		add(field, fmt.Sprintf("%d characters", k.Got), fmt.Sprintf("at most %d", k.Want))
	case *kind.MinItems:
		add(field, fmt.Sprintf("%d elements", k.Got), fmt.Sprintf("at least %d", k.Want))
	case *kind.MaxItems:
		add(field, fmt.Sprintf("%d elements", k.Got), fmt.Sprintf("at most %d", k.Want))
	case *kind.MinProperties:
		add(field, fmt.Sprintf("%d fields", k.Got), fmt.Sprintf("at least %d", k.Want))
	case *kind.MaxProperties:
		add(field, fmt.Sprintf("%d fields", k.Got), fmt.Sprintf("at most %d", k.Want))
	case *kind.Minimum:
		add(field, k.Got.RatString(), "at least "+k.Want.RatString())
	case *kind.Maximum:
		add(field, k.Got.RatString(), "at most "+k.Want.RatString())
	default:
		add(field, "a value that does not fit", described("see docs/pipelines.md"))
	}
}

// objectOf finds the object whose property has a name that the schema at url refuses. The library's own location of
// such a fault is a slice that it goes on to write to, so that it names whatever was looked at last.
func (r *schemaReader) objectOf(name, url string, value any, location []string) []string {
	below := func(token string, value any) []string {
		return r.objectOf(name, url, value, append(slices.Clone(location), token))
	}
	switch value := value.(type) {
	case map[string]any:
		_, has := value[name]
		schema := schemaAt(r.root, location)
		if has && schema != nil && schema.PropertyNames != nil && schema.PropertyNames.Location == url {
			return location
		}
		for _, token := range slices.Sorted(maps.Keys(value)) {
			if found := below(token, value[token]); found != nil {
				return found
			}
		}
	case []any:
		for i, element := range value {
			if found := below(strconv.Itoa(i), element); found != nil {
				return found
			}
		}
	}
	return nil
}

// schemaAt follows an instance's location into a schema; nil where it says nothing about that place.
func schemaAt(schema *jsonschema.Schema, location []string) *jsonschema.Schema {
	schema = target(schema)
	for _, token := range location {
		if schema == nil {
			return nil
		}
		below, isProperty := schema.Properties[token]
		elements, isList := schema.Items2020, schema.Items2020 != nil
		additional, isAdditional := schema.AdditionalProperties.(*jsonschema.Schema)
		switch {
		case isProperty:
			schema = target(below)
		case isList:
			schema = target(elements)
		case isAdditional:
			schema = target(additional)
		default:
			return nil
		}
	}
	return schema
}

// target follows $ref.
func target(schema *jsonschema.Schema) *jsonschema.Schema {
	for schema != nil && schema.Ref != nil {
		schema = schema.Ref
	}
	return schema
}

func propertyNames(schema *jsonschema.Schema) []string {
	if schema == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(schema.Properties))
}

// fieldPath writes a JSON pointer's tokens as a path: cases[0].when, headers["X Key"].
func fieldPath(tokens []string) string {
	path := ""
	for _, token := range tokens {
		if index, err := strconv.Atoi(token); err == nil {
			path = IndexField(path, index)
		} else {
			path = KeyField(path, token)
		}
	}
	return path
}

func article(jsonType string) string {
	switch jsonType {
	case "null":
		return "null"
	case "object", "array", "integer":
		return "an " + jsonType
	default:
		return "a " + jsonType
	}
}

package environment

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/relayops/relayops/internal/runspec"
)

// Milliseconds is a duration that a variable gives as a whole number of milliseconds, 0 or more.
type Milliseconds int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Milliseconds) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 0 {
		return errors.New("a whole number of milliseconds, 0 or more")
	}
	*m = Milliseconds(n)
	return nil
}

// Duration is the same as run specifications have it.
func (m Milliseconds) Duration() runspec.Duration {
	return runspec.Duration(time.Duration(m) * time.Millisecond)
}

// Table is a runspec.Table as JSON.
type Table runspec.Table

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Table) UnmarshalText(text []byte) error {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode((*runspec.Table)(t)); err != nil {
		return fmt.Errorf(`JSON such as {"schema": "public", "name": "outbox", "columns": {"event_id": "id"}} (%w)`, err)
	}
	return nil
}

// Parse reads a struct of variables with env tags, which may embed others. The error names every variable that is
// wrong.
func Parse[T any]() (T, error) {
	v, err := env.ParseAs[T]()
	if err == nil {
		return v, nil
	}
	var all env.AggregateError
	if !errors.As(err, &all) {
		return v, err
	}
	names := make(map[string]string)
	collectNames(reflect.TypeFor[T](), names)
	explained := make([]error, 0, len(all.Errors))
	for _, one := range all.Errors {
		var parse env.ParseError
		if !errors.As(one, &parse) || names[parse.Name] == "" {
			explained = append(explained, one)
			continue
		}
		key := names[parse.Name]
		explained = append(explained, fmt.Errorf("%s: found %q, allowed: %s", key, os.Getenv(key), allowed(parse)))
	}
	return v, errors.Join(explained...)
}

// collectNames maps the fields' names to those of their variables: the library's errors name the fields.
func collectNames(structure reflect.Type, names map[string]string) {
	for field := range structure.Fields() {
		if field.Anonymous && field.Type.Kind() == reflect.Struct {
			collectNames(field.Type, names)
		} else if name, _, _ := strings.Cut(field.Tag.Get("env"), ","); name != "" {
			names[field.Name] = name
		}
	}
}

// allowed says what a variable of a type may hold.
func allowed(parse env.ParseError) string {
	switch parse.Type {
	case reflect.TypeFor[time.Duration]():
		return `a duration, such as "2m" or "168h"`
	case reflect.TypeFor[Milliseconds](), reflect.TypeFor[Table]():
		return parse.Err.Error()
	}
	switch parse.Type.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	default:
		return parse.Err.Error()
	}
}

package relay

import (
	"reflect"
	"time"

	"github.com/caarlos0/env/v11"
)

// fieldName is the i-th field of variables, in the order in which the library lists the keys.
func fieldName(i int) string { return reflect.TypeFor[variables]().Field(i).Name }

// allowed says what a variable of a type may hold.
func allowed(parse env.ParseError) string {
	switch parse.Type {
	case reflect.TypeFor[time.Duration]():
		return `a duration, such as "2m" or "168h"`
	case reflect.TypeFor[milliseconds](), reflect.TypeFor[tableMapping]():
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

// Package expression compiles and evaluates CEL (https://cel.dev), the language of conditions and of computed values.
//
// An expression reads event, payload, steps and context, as engine.Call.Data has them. It does no input or output and
// knows no clock, so that the same data gives the same value. What it may cost is bounded by [CostLimit], by
// [MaxSourceBytes] and by the step's context.
//
// A JSON number that is written as an integer is an int (a uint where int is too small); every other is a double.
// Numbers of different types compare, but do not add or multiply: double(payload.count) * 1.5. Numbers that come
// out are written in the shortest form that keeps their value.
//
// Beside the standard functions there are those of CEL's strings, math and base64 extensions, without those whose
// result can be much larger than what goes in: join, format, and replace with a longer text.
package expression

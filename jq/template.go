package jq

import "encoding/json"

// Template is a JSON value in which strings may be expressions; it is compiled
// once and safe for use by many goroutines.
type Template struct {
	constant bool
	value    any
}

// Expression compiles a field that the language types as an expression: both
// "${ … }" and the bare text are accepted.
func Expression(src string, vars []string) (*Template, error) { panic("not written") }

// New compiles a JSON value: every string in it that is "${ … }" as a whole is
// an expression, every other value stands for itself.
func New(value any, vars []string) (*Template, error) { panic("not written") }

// Constant reports whether the template has no expression in it.
func (t *Template) Constant() bool { return t.constant }

// Uses reports whether an expression in t reads a variable ("$input").
func (t *Template) Uses(name string) bool { return false }

// Eval returns the template's value on data, which it does not change. A nil
// lookup knows no variable.
func (t *Template) Eval(data any, lookup Lookup, lim Limits) (any, error) { panic("not written") }

// Truthy is jq's notion of true: everything but null and false.
func Truthy(v any) bool { return v != nil && v != false }

// Decode reads one JSON value; numbers become json.Number, so none loses a
// digit. Empty raw is null.
func Decode(raw json.RawMessage) (any, error) { panic("not written") }

// Encode returns v's canonical JSON: keys in order, no HTML escaping. It stops
// with expression.too-large when the result would exceed max bytes (0 = DefaultBytes).
func Encode(v any, max int) (json.RawMessage, error) { panic("not written") }

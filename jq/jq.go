// Package jq evaluates the expressions of a definition: jq, bounded in time
// and memory, with no way to the outside.
//
// An expression sees the data it is given and the variables that its author
// may use; it cannot read the environment, files, the network or a clock, and
// the same arguments always give the same result. A runaway ends with a
// problem, never with the process: evaluation is bounded by Limits, counted in
// machine-independent steps and bytes.
package jq

import "encoding/json"

// Limits bounds one evaluation. A zero field means the default.
type Limits struct {
	Steps int // operations of the jq machine; default DefaultSteps
	Bytes int // size of the result, and of any value on the way to it, as JSON; default DefaultBytes
}

const (
	DefaultSteps   = 1_000_000
	DefaultBytes   = 1 << 20
	MaxSourceBytes = 16 << 10 // of one expression's text
	MaxDepth       = 256      // nesting of a value
)

// Lookup gives the value of a variable ("$input"), as a JSON value of
// encoding/json's any form (json.Number for numbers). It is called at most
// once per evaluation for each variable the expression really uses.
type Lookup func(name string) (any, error)

var _ = json.Valid

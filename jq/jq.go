// Package jq evaluates the expressions of a definition: jq, bounded in time
// and memory, with no way to the outside.
//
// An expression sees the data it is given and the variables that its author
// may use; it cannot read the environment, files, the network or a clock, and
// the same arguments always give the same result. A runaway ends with a
// problem, never with the process: evaluation is bounded by Limits, counted in
// machine-independent steps and bytes.
//
// An expression is parsed, checked against a list of allowed functions and
// rewritten before it is compiled: a guard stands before every primitive whose
// work is not constant (an operator, tojson, a regular expression, an update),
// pays for the work in steps, and then has gojq's own primitive do it. The
// machine itself pays one step for each of its instructions, those that the
// guards add left out. What an expression allocates is therefore bounded by its
// steps, and single values are bounded by Limits.Bytes.
//
// An expression means what it means to gojq, in its results, their order and
// the text of its errors, with these differences, which testdata/differences.txt
// holds one by one:
//
//   - numbers of more than MaxDigits digits take no part in arithmetic
//   - an array cannot be indexed by an array (use indices)
//   - a path is at most MaxDepth long, and an index in one that is set at most
//     half of Limits.Bytes
//   - fromdate takes fractions of a second
//   - strftime and strptime know no %Z, and formats of at most 200 bytes
//   - regular expressions are bounded by MaxPattern and MaxProgram
//   - the functions that reach outside are refused (now, env, input, debug,
//     halt ...), and so are jn and yn, whose time is not bounded
//   - names that begin with two underscores are reserved, and an operator stays
//     one whatever function of that name (_add, _modify) the author defines
//   - the first result counts; Encode writes objects with their keys in order
package jq

// Limits bounds one evaluation. A zero field means the default.
type Limits struct {
	Steps int // operations of the jq machine; default DefaultSteps
	Bytes int // size of the result, and of any value on the way to it, as JSON; default DefaultBytes
}

const (
	DefaultSteps   = 1_000_000
	DefaultBytes   = 1 << 20
	MaxSourceBytes = 16 << 10 // of one expression's text
	MaxDepth       = 256      // nesting of a value, and length of a path
	MaxDigits      = 1_000    // of a number that takes part in arithmetic
	MaxPattern     = 1_000    // bytes of a regular expression
	MaxProgram     = 10_000   // instructions of a compiled regular expression
)

func (l Limits) withDefaults() Limits {
	if l.Steps <= 0 {
		l.Steps = DefaultSteps
	}
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	return l
}

// Lookup gives the value of a variable ("$input"), as a JSON value of
// encoding/json's any form (json.Number for numbers). It is called at most
// once per evaluation for each variable the expression really uses.
type Lookup func(name string) (any, error)

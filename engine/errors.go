package engine

import "strings"

// ErrorBase is the canonical form of the standard error types; the kind follows. Documents may also write them with
// the older host and path, see [SameType].
const ErrorBase = "https://open-workflow-specification.org/spec/1.0.0/errors/"

// Kinds of the standard errors, with their status.
const (
	ErrConfiguration  = "configuration"  // 400
	ErrValidation     = "validation"     // 400
	ErrExpression     = "expression"     // 400
	ErrAuthentication = "authentication" // 401
	ErrAuthorization  = "authorization"  // 403
	ErrTimeout        = "timeout"        // 408
	ErrCommunication  = "communication"  // 500 or the response's
	ErrRuntime        = "runtime"        // 500
)

// CodeElsewhere is that of the problem of a definition which is Go code of other nodes:
// they have its instances' messages and results, whatever is to become of them.
const CodeElsewhere = "definition.elsewhere"

// typeAliases are the host and path families under which the standard error
// types have been published; they all mean the same kind (dsl-facts 1.1).
var typeAliases = []string{
	ErrorBase,
	"https://open-workflow-specification.org/dsl/errors/types/",
	"https://serverlessworkflow.io/spec/1.0.0/errors/",
	"https://serverlessworkflow.io/dsl/errors/types/",
}

// SameType reports whether two error types are the same, whichever alias of a standard type each is written with.
func SameType(a, b string) bool { return canonicalType(a) == canonicalType(b) }

func canonicalType(t string) string {
	for _, base := range typeAliases {
		if kind, ok := strings.CutPrefix(t, base); ok {
			return ErrorBase + kind
		}
	}
	return t
}

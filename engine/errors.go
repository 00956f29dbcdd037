package engine

import (
	"errors"
	"strings"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// ErrorBase is the canonical form of the standard error types; the kind
// follows. Documents may also write them with the older host and path, see
// [SameType].
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

// raised is a workflow error on its way to a try.
type raised struct{ e snapshot.Error }

func (r *raised) Error() string { return r.e.Type + ": " + r.e.Title }

// raise makes a standard workflow error.
func raise(kind string, status int, title, detail string) error {
	return &raised{snapshot.Error{Type: ErrorBase + kind, Status: status, Title: title, Detail: detail}}
}

// asRaised turns an expression's problem into a workflow error; any other
// error is not the workflow's doing and stays what it is.
func asRaised(err error) (*raised, bool) {
	var r *raised
	if errors.As(err, &r) {
		return r, true
	}
	var p *problem.Error
	if errors.As(err, &p) && strings.HasPrefix(p.Code, "expression.") {
		return &raised{snapshot.Error{Type: ErrorBase + ErrExpression, Status: 400, Title: "Expression Error", Detail: p.Error()}}, true
	}
	return nil, false
}

// typeAliases are the host and path families under which the standard error
// types have been published; they all mean the same kind (dsl-facts 1.1).
var typeAliases = []string{
	ErrorBase,
	"https://open-workflow-specification.org/dsl/errors/types/",
	"https://serverlessworkflow.io/spec/1.0.0/errors/",
	"https://serverlessworkflow.io/dsl/errors/types/",
}

// SameType reports whether two error types are the same, whichever alias of a
// standard type each is written with.
func SameType(a, b string) bool { return canonicalType(a) == canonicalType(b) }

func canonicalType(t string) string {
	for _, base := range typeAliases {
		if kind, ok := strings.CutPrefix(t, base); ok {
			return ErrorBase + kind
		}
	}
	return t
}

package program

import (
	"errors"
	"strings"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// MaxInstance bounds what an author says an error is an instance of, in bytes.
const MaxInstance = 256

// raised is a workflow error on its way to a try.
type raised struct{ e snapshot.Error }

func (r *raised) Error() string { return r.e.Type + ": " + r.e.Title }

// raise makes a standard workflow error.
func raise(kind string, status int, title, detail string) error {
	return &raised{snapshot.Error{Type: engine.ErrorBase + kind, Status: status, Title: title, Detail: detail}}
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
		return &raised{snapshot.Error{Type: engine.ErrorBase + engine.ErrExpression, Status: 400, Title: "Expression Error", Detail: p.Error()}}, true
	}
	return nil, false
}

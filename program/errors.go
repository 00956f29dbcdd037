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
type raised struct {
	e     snapshot.Error
	ended bool // by what the workflow makes of its output, when no task is under way
}

func (r *raised) Error() string { return r.e.Type + ": " + r.e.Title }

// raise makes a standard workflow error.
func raise(kind string, status int, title, detail string) error {
	return &raised{e: snapshot.Error{Type: engine.ErrorBase + kind, Status: status, Title: title, Detail: detail}}
}

// raisedAt says of an error that has no place yet where it was.
func raisedAt(pointer string, err error) error {
	if e, ok := asRaised(err); ok && e.e.Instance == "" {
		e.e.Instance = pointer
		return e
	}
	return err
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
		return &raised{e: snapshot.Error{Type: engine.ErrorBase + engine.ErrExpression, Status: 400, Title: "Expression Error", Detail: p.Error()}}, true
	}
	return nil, false
}

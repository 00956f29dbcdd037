// Package problem is an error that a user of Aqueduct is meant to read.
//
// It carries a stable code for programs, and for people what is wrong, where, and what to do about it. Every package
// reports bad input with it; the HTTP API turns it into an RFC 9457 problem document, the CLI into a message and an
// exit status, the pump into the reason of a dead letter.
//
// A code never changes its meaning once released; docs/reference/errors.md lists them all.
package problem

import (
	"errors"
	"fmt"
	"strings"
)

// Kind says in one word what a caller can do about a problem. HTTP status and the pump's retries follow from it.
type Kind string

const (
	Invalid     Kind = "invalid"     // the input is wrong: mend it, a retry changes nothing
	NotFound    Kind = "not-found"   // what is named does not exist
	Conflict    Kind = "conflict"    // the state does not allow it (now)
	Denied      Kind = "denied"      // the caller may not do it
	TooLarge    Kind = "too-large"   // a named limit is exceeded
	Unavailable Kind = "unavailable" // something outside is down: retry later
	Internal    Kind = "internal"    // a bug or a corrupt store: tell the developers
)

// Error is a problem with a stable code, such as "signal.too-large".
type Error struct {
	Code   string  // stable, lower case: area.what
	Kind   Kind    // what the caller can do
	Detail string  // what is wrong with which value, in one sentence without a full stop
	Where  []Place // where in the input, most important first; may be empty
	Hint   string  // what to do; may be empty
	Cause  error   // may be nil
}

// Place is a position in a source text. Zero Line means unknown.
type Place struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`    // from 1
	Column  int    `json:"column,omitempty"`  // from 1, in characters
	Pointer string `json:"pointer,omitempty"` // JSON pointer into the document
	Code    string `json:"code,omitempty"`    // the code of this one finding
	Detail  string `json:"detail,omitempty"`  // what is wrong at this place
	Hint    string `json:"hint,omitempty"`    // what to write instead
}

func (p Place) String() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(":%d:%d", p.Line, p.Column)
	}
	if p.Pointer != "" {
		if s != "" {
			s += ": "
		}
		s += p.Pointer
	}
	if p.Detail != "" {
		if s != "" {
			s += ": "
		}
		s += p.Detail
	}
	if p.Hint != "" {
		s += " (" + p.Hint + ")"
	}
	return s
}

// New makes a problem; args format detail. Written into its 500 callers, it would be 0.1 MB of the program.
//
//go:noinline
func New(kind Kind, code, detail string, args ...any) *Error {
	return &Error{Code: code, Kind: kind, Detail: fmt.Sprintf(detail, args...)}
}

// Wrap makes a problem with a cause.
func Wrap(cause error, kind Kind, code, detail string, args ...any) *Error {
	e := New(kind, code, detail, args...)
	e.Cause = cause
	return e
}

// WithHint returns e after setting what to do about it.
//
//go:noinline
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

func (e *Error) Error() string {
	s := e.Detail
	for _, p := range e.Where {
		s += "\n  " + p.String()
	}
	if e.Cause != nil { // each process has one of two verbs of the JSON library by chance: what is told again is told in the same words
		s += ": " + strings.Replace(e.Cause.Error(), "json: unable to ", "json: cannot ", 1)
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s + " [" + e.Code + "]"
}

func (e *Error) Unwrap() error { return e.Cause }

// CodeOf returns the code of the first problem in err's chain, or "internal" when there is none.
func CodeOf(err error) string {
	if p, ok := errors.AsType[*Error](err); ok {
		return p.Code
	}
	return "internal"
}

// KindOf returns the kind of the first problem in err's chain, or Internal.
func KindOf(err error) Kind {
	if p, ok := errors.AsType[*Error](err); ok {
		return p.Kind
	}
	return Internal
}

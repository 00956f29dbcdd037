package activity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Types of the errors that a failed command raises, as the Open Workflow DSL
// names them.
const (
	errorTypes        = "https://open-workflow-specification.org/spec/1.0.0/errors/"
	TypeCommunication = errorTypes + "communication"
	TypeConfiguration = errorTypes + "configuration"
	TypeRuntime       = errorTypes + "runtime"
	TypeTimeout       = errorTypes + "timeout"
	TypeValidation    = errorTypes + "validation"
)

// Error is a workflow error that a function raises on purpose: the definition
// can catch it by its type and status. It is not retried here, unless it is
// wrapped by [RetryAfter]; the definition may say otherwise.
type Error struct {
	Type   string // a URI; "" = TypeRuntime
	Status int    // 0 = 500
	Title  string
	Detail string
}

func (e *Error) Error() string {
	switch {
	case e.Detail != "":
		return e.Detail
	case e.Title != "":
		return e.Title
	}
	return e.Type
}

// Permanent marks an error that another attempt will not mend. Permanent(nil)
// is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &marked{err: err}
}

// RetryAfter marks an error after which another attempt makes sense, but not
// before d from now; 0 leaves the delay to the policy. RetryAfter(nil, d) is
// nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &marked{err: err, retry: true, after: max(d, 0)}
}

// Unknown marks an error after which nobody knows whether the function has done
// what it should: it asked another system, and got no answer. Unmarked, an error
// says that it was not done; but a timeout, a connection that broke and a panic
// leave it unknown by themselves. Unknown(nil) is nil.
func Unknown(err error) error {
	if err == nil {
		return nil
	}
	return &unknown{err}
}

type unknown struct{ err error }

func (u *unknown) Error() string { return u.err.Error() }
func (u *unknown) Unwrap() error { return u.err }

// leftOpen reports whether an error says nothing about what was done.
func leftOpen(err error) bool {
	var marked *unknown
	var raised *Error
	var network net.Error
	var dial *net.OpError
	switch {
	case errors.As(err, &marked):
		return true
	case errors.As(err, &raised):
		return false
	case errors.As(err, &dial) && dial.Op == "dial":
		return false
	case errors.As(err, &network) && network.Timeout():
		return true
	}
	for _, broken := range []error{context.DeadlineExceeded, context.Canceled, io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, broken) {
			return true
		}
	}
	return false
}

// maybe says of a failure whether the outside may have done what it was asked.
func maybe(f *engine.Failure, unknown bool) *engine.Failure {
	f.Unknown = unknown
	return f
}

// marked carries a verdict over an error; the outermost one counts.
type marked struct {
	err   error
	retry bool
	after time.Duration
}

func (m *marked) Error() string { return m.err.Error() }
func (m *marked) Unwrap() error { return m.err }

// FailureOf is what a node makes of a function's error.
func FailureOf(err error) *engine.Failure {
	f := maybe(retryable(TypeRuntime, http.StatusInternalServerError, "function failed", err.Error()), leftOpen(err))
	var raised *Error
	if errors.As(err, &raised) {
		f.Retry = false
		f.Error.Title = raised.Title
		if raised.Detail != "" {
			f.Error.Detail = raised.Detail
		}
		if raised.Type != "" && len(raised.Type) <= snapshot.MaxErrorType { // a longer one is told as the text of the error
			f.Error.Type = raised.Type
		}
		if raised.Status != 0 {
			f.Error.Status = raised.Status
		}
	}
	var mark *marked
	if errors.As(err, &mark) {
		f.Retry, f.After = mark.retry, mark.after
	}
	f.Ill = f.Retry
	return f
}

func permanent(kind string, status int, title, detail string) *engine.Failure {
	return &engine.Failure{Error: snapshot.Error{Type: kind, Status: status, Title: title, Detail: detail}}
}

func retryable(kind string, status int, title, detail string) *engine.Failure {
	f := permanent(kind, status, title, detail)
	f.Retry = true
	return f
}

// ill marks a failure as the destination's own: not the command's, and not that
// of who gave up waiting.
func ill(f *engine.Failure) *engine.Failure {
	f.Ill = true
	return f
}

// interrupted is the failure of an attempt whose caller stopped waiting, such
// as a node that drains. Nobody knows whether it took effect; the idempotency
// key makes the next attempt safe.
func interrupted(target string) *engine.Failure {
	return retryable(TypeRuntime, http.StatusServiceUnavailable, "interrupted",
		fmt.Sprintf("the attempt at %q was interrupted", target))
}

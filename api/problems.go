package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
)

// codeUnknown is that of store.Unknown.
const codeUnknown = "store.outcome-unknown"

// codeDocs is where every code is explained.
const codeDocs = "https://github.com/aqueduct-engine/aqueduct/blob/main/docs/reference/errors.md#"

// statusOf chooses the HTTP status of a problem; nothing else does.
func statusOf(p *problem.Error) int {
	switch p.Kind {
	case problem.Invalid:
		if strings.HasPrefix(p.Code, "task.invalid-") {
			return http.StatusUnprocessableEntity
		}
		return http.StatusBadRequest
	case problem.NotFound:
		return http.StatusNotFound
	case problem.Conflict:
		return http.StatusConflict
	case problem.Denied:
		if strings.HasPrefix(p.Code, "access.token-") || p.Code == "access.certificate-refused" {
			return http.StatusUnauthorized
		}
		return http.StatusForbidden
	case problem.TooLarge:
		return http.StatusRequestEntityTooLarge
	case problem.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// titles say a status in words for people.
func title(status int) string {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return "The input is wrong"
	case http.StatusUnauthorized:
		return "The caller is not known"
	case http.StatusNotFound:
		return "It does not exist"
	case http.StatusConflict:
		return "The state does not allow it"
	case http.StatusForbidden:
		return "The caller may not do it"
	case http.StatusRequestEntityTooLarge:
		return "A limit is exceeded"
	case http.StatusServiceUnavailable:
		return "Something is down"
	case http.StatusInternalServerError:
		return "An error of the engine"
	}
	return http.StatusText(status)
}

// failure is a problem on its way out; huma writes it as it is.
type failure struct {
	client.Problem
}

func (f *failure) Error() string             { return f.Detail }
func (f *failure) GetStatus() int            { return f.Status }
func (f *failure) ContentType(string) string { return "application/problem+json" }

// GetHeaders tells who finds no memory when to try again.
func (f *failure) GetHeaders() http.Header {
	if f.Code != memory.CodeBusy {
		return nil
	}
	return http.Header{"Retry-After": {busyAfter}}
}

// busyAfter is in seconds: what the node works on has waited already.
const busyAfter = "1"

func newFailure(status int, code, detail, hint string) *failure {
	return &failure{client.Problem{
		Type: codeDocs + strings.ReplaceAll(code, ".", ""), Title: title(status), Status: status, Code: code, Detail: detail, Hint: hint,
	}}
}

// getReadiness is the operation that is asked again and again.
const getReadiness = "get-readiness"

// refuse translates an error of a service into what the caller may see. What
// is our own fault is logged, and told to the caller by its code only.
func (s *service) refuse(ctx context.Context, operation string, err error) error {
	f := s.refused(ctx, operation, err)
	remember(ctx, f.Status, f.Code)
	return f
}

func (s *service) refused(ctx context.Context, operation string, err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	if errors.Is(err, store.ErrUnknown) && problem.CodeOf(err) != codeUnknown { // whatever else it says
		err = store.Unknown(err)
	}
	var p *problem.Error
	if !errors.As(err, &p) {
		p = unnamed(ctx, err)
	}
	status := statusOf(p)
	if status == http.StatusInternalServerError {
		s.Log.Error("request failed", "operation", operation, "code", p.Code, "error", err)
		return newFailure(status, p.Code, "the engine could not do it; its log says why", "")
	}
	f = newFailure(status, p.Code, p.Detail, p.Hint)
	if p.Kind == problem.Unavailable {
		level := slog.LevelWarn
		if operation == getReadiness { // the store tells its trouble itself
			level = slog.LevelDebug
		}
		s.Log.Log(ctx, level, "request refused", "operation", operation, "code", p.Code, "error", err)
	} else if p.Cause != nil && p.Kind == problem.Invalid {
		f.Detail += ": " + p.Cause.Error()
	}
	for _, w := range p.Where {
		f.Where = append(f.Where, client.Place(w))
	}
	return f
}

// unnamed makes a problem of an error that is none.
func unnamed(ctx context.Context, err error) *problem.Error {
	switch {
	case ctx.Err() != nil:
		return problem.Wrap(err, problem.Unavailable, "request.cancelled", "the request ended before it was done")
	case errors.Is(err, store.ErrNotFound):
		return problem.Wrap(err, problem.NotFound, "not-found", "it does not exist")
	case errors.Is(err, store.ErrClosed), errors.Is(err, context.Canceled): // the node's own work is given up
		return problem.Wrap(err, problem.Unavailable, "node.stopping", "the node is shutting down").WithHint("ask another node, or again soon")
	}
	return problem.Wrap(err, problem.Internal, "internal", "internal error")
}

// missing turns a store's not-found into a problem with a code of its own.
func missing(err error, code, detail string, args ...any) error {
	if errors.Is(err, store.ErrNotFound) {
		return problem.Wrap(err, problem.NotFound, code, detail, args...)
	}
	return err
}

// invalid is what this package itself finds wrong with a request.
func invalid(where, detail string, args ...any) error {
	p := problem.New(problem.Invalid, "request.invalid", detail, args...)
	if where != "" {
		p.Where = []problem.Place{{Pointer: where}}
	}
	return p
}

// translate gives huma's own errors the shape of all others.
func (s *service) translate(ctx huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	var f *failure
	switch m.Status {
	case http.StatusRequestEntityTooLarge:
		f = newFailure(m.Status, "request.too-large", fmt.Sprintf("the body exceeds %d bytes", ctx.Operation().MaxBodyBytes-1),
			"store large data in the application's own table and send a reference")
	case http.StatusUnsupportedMediaType:
		f = newFailure(m.Status, "request.content-type", "the body's content type is not understood", "send Content-Type: application/json")
		return &f.Problem, nil
	case http.StatusRequestTimeout:
		f = newFailure(m.Status, "request.timeout", "the body did not arrive in time", "")
	case http.StatusInternalServerError:
		if ctx.Context().Err() == nil {
			s.Log.Error("request failed", "operation", ctx.Operation().OperationID, "error", m.Detail)
		}
		f = newFailure(m.Status, "internal", "the engine could not do it; its log says why", "")
		return &f.Problem, nil
	default:
		f = newFailure(m.Status, "request.invalid", m.Detail, "")
	}
	for _, ofBody := range []bool{false, true} { // parameters first
		for _, e := range m.Errors {
			if strings.HasPrefix(e.Location, "body") == ofBody {
				f.Where = append(f.Where, client.Place{Pointer: pointer(e.Location), Detail: e.Message})
			}
		}
	}
	if len(f.Where) > 0 && f.Code == "request.invalid" {
		f.Detail = "the request is wrong in " + count(len(f.Where), "place")
	}
	return &f.Problem, nil
}

func count(n int, noun string) string {
	if n == 1 {
		return "one " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// pointer makes a JSON pointer of huma's "body.items[0].name"; the place of a
// parameter stays as it is: "query.limit".
func pointer(location string) string {
	rest, inBody := strings.CutPrefix(location, "body")
	if !inBody {
		return location
	}
	return strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(rest)
}

// completedBy adds to the problem task.completed who did it, and when.
func (s *service) completedBy(ctx context.Context, id string, err error) error {
	if problem.CodeOf(err) != "task.completed" {
		return err
	}
	f, isFailure := s.refuse(ctx, "complete-task", err).(*failure)
	t, readErr := s.Reader.Tasks.Task(ctx, id)
	if readErr != nil || !isFailure {
		return err
	}
	f.CompletedBy, f.CompletedAt = t.EndedBy, t.EndedAt.UTC()
	f.Detail = fmt.Sprintf("task %s was completed by %s at %s", id, t.EndedBy, t.EndedAt.UTC().Format(time.RFC3339))
	return f
}

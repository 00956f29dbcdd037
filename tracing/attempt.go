package tracing

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// performer is what the runtime asks to perform commands.
type performer interface {
	Can(target string) bool
	Perform(ctx context.Context, c engine.Command, key string, attempt int) (json.RawMessage, *engine.Failure)
	Destination(c engine.Command) engine.Destination
	Backoff(failures int, key string) (delay time.Duration, ok bool)
}

// Performer makes a span of each attempt that another performer makes.
type Performer struct {
	performer
	t *Tracer
}

// Performer makes a span of each attempt that p makes.
func (t *Tracer) Performer(p performer) *Performer { return &Performer{p, t} }

// Targets lists what p performs, as far as it can: nodes tell each other.
func (p *Performer) Targets() []string {
	if lists, ok := p.performer.(interface{ Targets() []string }); ok {
		return lists.Targets()
	}
	return nil
}

// Perform makes one attempt. What it sends has the span of the attempt in its
// traceparent, unless its author says another; the command as it is stored stays as it is.
func (p *Performer) Perform(ctx context.Context, c engine.Command, key string, attempt int) (json.RawMessage, *engine.Failure) {
	if c.Instance == "" { // of none
		return p.performer.Perform(ctx, c, key, attempt)
	}
	at := p.t.instance(c.Headers, c.Instance)
	own := place{trace: at.trace, span: anyID(), sampled: at.sampled}
	if c.Token != "" {
		own.span = attemptIn(at.trace, c.Instance, c.Token+"/"+strconv.Itoa(attempt))
	}
	headers := make(map[string]string, len(c.Headers)+1)
	maps.Copy(headers, c.Headers)
	headers[signal.HeaderTraceparent] = own.String()
	c.Headers = headers
	if !at.sampled {
		return p.performer.Perform(ctx, c, key, attempt)
	}
	s := Span{Trace: at.trace, ID: own.span, Parent: at.span, Kind: Client, Name: c.Target, Start: p.t.Now()}
	status := 0
	result, failure := p.performer.Perform(activity.WithStatus(ctx, &status), c, key, attempt)
	s.End = p.t.Now()
	s.text("aqueduct.instance.id", c.Instance)
	s.text("aqueduct.task", c.Pointer)
	s.number("aqueduct.command", c.Position)
	s.number("aqueduct.attempt", int64(attempt))
	s.text("aqueduct.target", c.Target)
	s.toHost(p.Destination(c), status)
	if failure != nil {
		kind := typeOf(failure.Error.Type)
		if status >= 400 {
			kind = strconv.Itoa(status)
		}
		s.failed(kind)
	}
	p.t.Sink(s)
	return result, failure
}

// methods are those that everybody knows; another may be anything.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace}

// toHost says what is known of an HTTP request. Its path may have what the instance works on.
func (s *Span) toHost(to engine.Destination, status int) {
	if to.Host == "" {
		return
	}
	method, _, _ := strings.Cut(to.Target, " ")
	if !slices.Contains(methods, method) {
		method = other
	}
	s.Name = method
	s.text("http.request.method", method)
	host, port, err := net.SplitHostPort(to.Host)
	if err != nil {
		host = to.Host
	}
	s.text("server.address", strings.Trim(host, "[]"))
	if n, err := strconv.ParseInt(port, 10, 64); err == nil {
		s.number("server.port", n)
	}
	if status != 0 {
		s.number("http.response.status_code", int64(status))
	}
}

// Package activity performs commands: it calls registered Go functions, and it
// sends HTTP requests.
//
// A [Performer] makes exactly one attempt. It never waits and tries again:
// when a failed attempt may be repeated is told by [Policy], and the repetition
// is made durable by its caller, so that a crash between two attempts loses
// neither the count nor the delay. Every attempt of a command carries the same
// idempotency key; what is called must tolerate to be called twice with it.
//
// How many attempts there are at once, and whether one is made at all, is the
// caller's: it is told by [Performer.Destination] where a command goes, and by
// engine.Failure.Ill that a failure is the destination's own.
//
// Limits: each attempt has a timeout, each answer and each result a size. A
// function that panics is a failed attempt, never a dead process; one that
// ignores the end of its context blocks the worker that called it.
package activity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// TargetHTTP is the target of a command that is an HTTP request.
const TargetHTTP = "http"

// Defaults and limits of a [Config].
const (
	DefaultTimeout          = 30 * time.Second // of one attempt
	DefaultMaxResponseBytes = 1 << 20          // of an HTTP answer's body
	DefaultMaxResultBytes   = 1 << 20          // of a result, as JSON
	DefaultIdlePerHost      = 64               // connections to one host that are kept
	MaxResultDepth          = 256              // nesting of a result, as of every value of an expression
)

// Func is a Go function that performs commands. Its input is the command's,
// its result is written as JSON. [Info] tells it about the attempt. An error
// is retried by policy unless it is [Permanent] or an [Error].
type Func func(ctx context.Context, input json.RawMessage) (any, error)

// Config is what a Performer is made of. A zero field means the default.
type Config struct {
	Timeout          time.Duration            // of an attempt whose command names none
	MaxResponseBytes int64                    // of an HTTP answer's body
	MaxResultBytes   int                      // of a result, as JSON
	IdlePerHost      int                      // connections to one host that are kept
	Policy           Policy                   // of further attempts
	Sink             *url.URL                 // where CloudEvents are published; nil = nowhere
	SinkMode         string                   // SinkStructured (the default) or SinkBinary
	Egress           Egress                   // where calls, events and requests for tokens may go
	FetchEgress      Egress                   // where documents that definitions refer to may be
	Transport        http.RoundTripper        // default: one of its own that keeps to Egress; another is trusted to know where it may go
	Secrets          Secrets                  // nil = none
	SecretHosts      map[string][]HostPattern // where a secret may be sent, by its name; one that is not here goes where definitions write it out
	Metrics          prometheus.Registerer    // nil = not registered
	Memory           *memory.Pool             // for answers that are large; nil = as much as there is
	Log              *slog.Logger             // nil = silent
	// SinkAuthorization is what requests to the sink have in Authorization, asked at each; nil = nothing.
	SinkAuthorization func() (string, error)
}

// withDefaults returns the configuration, and the transport of what is fetched
// for publishing: a connection of the one is no connection of the other.
func (c Config) withDefaults() (Config, http.RoundTripper) {
	set(&c.Timeout, DefaultTimeout)
	set(&c.MaxResponseBytes, DefaultMaxResponseBytes)
	set(&c.MaxResultBytes, DefaultMaxResultBytes)
	set(&c.IdlePerHost, DefaultIdlePerHost)
	if c.SinkMode == "" {
		c.SinkMode = SinkStructured
	}
	c.Policy = c.Policy.WithDefaults()
	fetching := c.Transport
	if c.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = c.IdlePerHost
		c.Transport, fetching = newGuard(t, newPolicy(c.Egress)), newGuard(t, newPolicy(c.FetchEgress))
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, fetching
}

func set[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Performer performs commands. All methods may be called from many goroutines.
type Performer struct {
	config  Config
	client  *http.Client // of calls and tokens
	fetcher *http.Client // of what definitions refer to
	tokens  tokens
	metrics *metrics

	mu    sync.RWMutex
	funcs map[string]Func
}

// New makes a Performer that knows the target "http" and no function.
func New(c Config) *Performer {
	c, fetching := c.withDefaults()
	m := newMetrics(c.Metrics)
	p := &Performer{
		config:  c,
		client:  &http.Client{Transport: once{c.Transport}, CheckRedirect: checkRedirect},
		fetcher: &http.Client{Transport: fetching, CheckRedirect: checkRedirect},
		metrics: m,
		funcs:   map[string]Func{},
	}
	p.tokens.client, p.tokens.timeout, p.tokens.bound = p.client, c.Timeout, p.bound
	return p
}

// Register makes f the function behind a target. The target
// engine.TargetEvent is that of CloudEvents: f gets each emitted event, in
// place of the sink. Registering a name twice, the
// empty name or "http" is a bug of the program that embeds Aqueduct: it panics.
func (p *Performer) Register(name string, f Func) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if name == "" || name == TargetHTTP || f == nil || p.funcs[name] != nil {
		panic(fmt.Sprintf("activity: register %q: the name is empty, reserved or taken, or the function is nil", name))
	}
	p.funcs[name] = f
}

// Can reports whether this Performer can perform commands for target.
func (p *Performer) Can(target string) bool {
	return target == TargetHTTP || p.function(target) != nil || target == engine.TargetEvent && p.config.Sink != nil
}

// Targets lists, in order, the targets for which this Performer can perform commands.
func (p *Performer) Targets() []string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	all := append(slices.Collect(maps.Keys(p.funcs)), TargetHTTP)
	if p.config.Sink != nil && p.funcs[engine.TargetEvent] == nil {
		all = append(all, engine.TargetEvent)
	}
	slices.Sort(all)
	return all
}

func (p *Performer) function(target string) Func {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.funcs[target]
}

// Close releases idle connections. Attempts that are under way go on.
func (p *Performer) Close() {
	p.client.CloseIdleConnections()
	p.fetcher.CloseIdleConnections()
}

// Perform makes one attempt at a command and returns its result as JSON, or
// how it failed. key is the command's idempotency key, the same at every
// attempt; attempt counts from 1. It blocks for at most the command's timeout;
// when ctx ends before, the failure may be retried.
func (p *Performer) Perform(ctx context.Context, c engine.Command, key string, attempt int) (json.RawMessage, *engine.Failure) {
	f := p.function(c.Target)
	toSink := f == nil && c.Target == engine.TargetEvent && p.config.Sink != nil
	if f == nil && c.Target != TargetHTTP && !toSink {
		return nil, permanent(TypeConfiguration, http.StatusBadRequest, "unknown target",
			fmt.Sprintf("no function %q is registered on this node", c.Target))
	}
	timer := prometheus.NewTimer(p.metrics.seconds.WithLabelValues(c.Target))
	defer timer.ObserveDuration()
	var result json.RawMessage
	var failure *engine.Failure
	if toSink {
		failure = p.publish(ctx, c, key)
	} else if f == nil {
		result, failure = p.request(ctx, c, key, &secrecy{})
	} else {
		result, failure = p.call(ctx, f, c, key, attempt)
	}
	switch {
	case failure != nil:
	case len(result) > p.config.MaxResultBytes:
		failure = tooLarge("limit.result", "result", p.config.MaxResultBytes)
		failure.Open = true // there is a result, so it was done
	case signal.Depth(result) > MaxResultDepth:
		failure = tooDeep()
		failure.Open = true
	}
	if failure != nil {
		result = nil
	}
	p.metrics.attempts.WithLabelValues(c.Target, outcome(failure)).Inc()
	return result, failure
}

// Backoff returns the delay before the next attempt at the command with a key
// after so many failed ones; ok is false when the policy allows none.
func (p *Performer) Backoff(failures int, key string) (delay time.Duration, ok bool) {
	if failures >= p.config.Policy.MaxAttempts {
		return 0, false
	}
	return p.config.Policy.Backoff(failures, key), true
}

// told reports whether a command is but told to somebody: that it was taken is all
// that its performer can answer, and what else there is in the answer is nobody's.
func told(c engine.Command) bool { return c.Ack != 0 || c.Target == engine.TargetEvent }

// tooLarge is the failure of an answer over a limit. It is permanent, because
// the same request has the same answer.
func tooLarge(code, what string, limit int) *engine.Failure {
	p := problem.New(problem.TooLarge, code, "%s exceeds %d bytes", what, limit).
		WithHint("keep large data where it is and return a reference to it")
	return permanent(TypeRuntime, http.StatusInternalServerError, what+" too large", p.Error())
}

func tooDeep() *engine.Failure {
	p := problem.New(problem.TooLarge, "limit.result-depth", "result nests deeper than %d levels", MaxResultDepth).
		WithHint("keep such data where it is and return a reference to it, or take the answer as it came with output: raw")
	return permanent(TypeRuntime, http.StatusInternalServerError, "result too deep", p.Error())
}

// call runs a function under its timeout and turns a panic into a failure.
func (p *Performer) call(ctx context.Context, f Func, c engine.Command, key string, attempt int) (json.RawMessage, *engine.Failure) {
	timeout := c.Timeout
	set(&timeout, p.config.Timeout)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	limited = context.WithValue(limited, attemptKey{}, Attempt{
		Target: c.Target, Key: key, Number: attempt, Instance: c.Instance, Pointer: c.Pointer, Headers: c.Headers, Ack: ackPath(c),
		Reverses: c.Reverses,
	})
	result, returned, err := p.recovered(limited, f, c)
	if err == nil {
		return result, nil
	}
	if returned {
		f := permanent(TypeRuntime, http.StatusInternalServerError, "result is not JSON", fmt.Sprintf("result of function %q: %v", c.Target, err))
		f.Open = true
		return nil, f
	}
	if errors.Is(err, context.DeadlineExceeded) && limited.Err() != nil && ctx.Err() == nil {
		return nil, maybe(ill(retryable(TypeTimeout, http.StatusRequestTimeout, "timeout",
			fmt.Sprintf("function %q did not answer within %s", c.Target, timeout))), true)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, maybe(interrupted(c.Target), true)
	}
	return nil, FailureOf(err)
}

// recovered calls a function and writes its result, whose own code may panic, too: then, and
// when the result is no JSON, the function has returned.
func (p *Performer) recovered(ctx context.Context, f Func, c engine.Command) (result json.RawMessage, returned bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.config.Log.Error("function panicked", "target", c.Target, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = Unknown(fmt.Errorf("function %q panicked: %v", c.Target, v))
		}
	}()
	value, err := f(ctx, c.Input)
	if err != nil || told(c) {
		return nil, false, err
	}
	returned = true
	result, err = json.Marshal(value)
	return result, returned, err
}

// Attempt is what a function may know about the attempt it is.
type Attempt struct {
	Target   string
	Key      string            // the idempotency key, the same at every attempt
	Number   int               // of this attempt, from 1
	Instance string            // the workflow instance that asked
	Pointer  string            // of the task in its definition
	Headers  map[string]string // trace and correlation ids
	Reverses string            // key of the call that this one compensates; "" = it compensates none
	Ack      string            // path of the API at which the command is acknowledged; "" = the function's result is the call's
}

type attemptKey struct{}

// Info returns the attempt a function is called for; outside of a call it is
// the zero Attempt.
func Info(ctx context.Context) Attempt {
	a, _ := ctx.Value(attemptKey{}).(Attempt)
	return a
}

type statusKey struct{}

// WithStatus is a context whose attempt notes the status of the HTTP answer that it gets.
func WithStatus(ctx context.Context, status *int) context.Context {
	return context.WithValue(ctx, statusKey{}, status)
}

// ackPath is where the API takes the acknowledgement of a command, "" for one
// that asks for none.
func ackPath(c engine.Command) string {
	if c.Ack <= 0 {
		return ""
	}
	return "/v1/instances/" + url.PathEscape(c.Instance) + "/commands/" + strconv.FormatInt(c.Position, 10) + "/ack"
}

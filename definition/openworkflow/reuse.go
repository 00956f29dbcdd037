package openworkflow

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/duration"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/nearest"
	"github.com/aqueduct-engine/aqueduct/program"
)

// reusable is what a document names under use, compiled. A name whose value
// has findings is there as well, so that its uses are no findings too.
type reusable struct {
	retries  map[string]*program.RetryPolicy
	timeouts map[string]*jq.Template
	errors   map[string]*program.Raise
}

// reuse compiles the named errors, retry policies and timeouts. They see what
// is everywhere, and no variable of the task that uses them.
func (c *compiler) reuse(at string, use map[string]any) {
	vars := scope{"$context", "$input", "$workflow", "$task", "$runtime"}
	c.eachNamed(at, use, "errors", func(name, p string, v any) {
		if c.reusable.errors == nil {
			c.reusable.errors = map[string]*program.Raise{}
		}
		c.reusable.errors[name] = c.failure(p, v, vars)
	})
	c.eachNamed(at, use, "retries", func(name, p string, v any) {
		if c.reusable.retries == nil {
			c.reusable.retries = map[string]*program.RetryPolicy{}
		}
		c.reusable.retries[name] = c.retryPolicy(p, v, vars.with("error"))
	})
	c.eachNamed(at, use, "timeouts", func(name, p string, v any) {
		if c.reusable.timeouts == nil {
			c.reusable.timeouts = map[string]*jq.Template{}
		}
		c.reusable.timeouts[name] = c.timeout(p, v, vars, false)
	})
}

func (c *compiler) eachNamed(at string, use map[string]any, field string, each func(name, p string, v any)) {
	v, ok := use[field]
	if !ok {
		return
	}
	at = join(at, field)
	for _, name := range keys(c.anyObject(at, v)) {
		each(name, join(at, name), v.(map[string]any)[name])
	}
}

// refer finds a name among what the document names.
func refer[T any](c *compiler, at, field, name string, named map[string]T) (res T) {
	if v, ok := named[name]; ok {
		return v
	}
	hint := "define it under use." + field
	if n, ok := nearest.Name(name, keys(named)); ok {
		hint = "did you mean " + n + "?"
	}
	c.report(at, codeReference, hint, "use.%s has no %s", field, clip(name))
	return res
}

// retry takes a policy, or the name of one.
func (c *compiler) retry(at string, v any, vars scope) *program.RetryPolicy {
	if name, ok := v.(string); ok {
		return refer(c, at, "retries", name, c.reusable.retries)
	}
	return c.retryPolicy(at, v, vars)
}

// hookRetry takes how the hooks of a state are tried again.
func hookRetry(c *compiler, at string, v any) *program.RetryPolicy {
	policy := c.retry(at, v, guardScope.with("error"))
	if policy != nil && policy.AttemptFor != nil {
		c.report(at, codeUnsupported, "give the call a timeout", "limit.attempt.duration of hooks")
	}
	return policy
}

func (c *compiler) retryPolicy(at string, v any, vars scope) *program.RetryPolicy {
	before := len(c.findings) + c.dropped
	m := c.object(at, v, shape{fields: []string{"when", "exceptWhen", "delay", "backoff", "limit", "jitter"}})
	res := &program.RetryPolicy{}
	for _, f := range []struct {
		name string
		to   **jq.Template
	}{{"when", &res.When}, {"exceptWhen", &res.ExceptWhen}} {
		if v, ok := m[f.name]; ok {
			*f.to = c.expression(join(at, f.name), v, vars)
		}
	}
	if v, ok := m["delay"]; ok {
		res.Delay = c.duration(join(at, "delay"), v, vars)
	}
	if v, ok := m["backoff"]; ok {
		res.Backoff = c.backoff(join(at, "backoff"), v)
	}
	if v, ok := m["limit"]; ok {
		c.retryLimit(join(at, "limit"), v, vars, res)
	}
	if v, ok := m["jitter"]; ok {
		c.jitter(join(at, "jitter"), v, vars, res)
	}
	if len(c.findings)+c.dropped == before {
		retrySpans(c, at, res)
	}
	if m != nil && !res.Limited && res.For == nil && res.Delay == nil && res.JitterTo == nil {
		c.warn(at, warnEndless, "add a delay, and a limit", "it retries for ever and without a delay: after %d retries it waits %s before each", program.EagerRetries, program.MinRetryDelay)
	}
	return res
}

// retrySpans refuses durations with which nothing would ever be tried again, and a range
// that ends before it begins. What expressions give is for the run.
func retrySpans(c *compiler, at string, p *program.RetryPolicy) {
	most, limited := fixed(p.For)
	delay, delayed := fixed(p.Delay)
	switch where := at + "/limit/duration"; {
	case limited && most <= 0:
		c.report(where, codeType, "leave retry out where nothing is to be tried again", "no retry begins within %s", most)
	case limited && delayed && delay > most:
		c.report(where, codeType, "make it longer, or the delay shorter", "no retry begins: the delay is %s, and the limit %s", delay, most)
	}
	from, begins := fixed(p.JitterFrom)
	if to, ends := fixed(p.JitterTo); begins && ends && from > to {
		c.report(join(at, "jitter"), codeType, "write the shorter one as from", "the range begins at %s and ends at %s", from, to)
	}
}

// fixed is a duration that the author has written; false = an expression, or none.
func fixed(t *jq.Template) (time.Duration, bool) {
	if t == nil || !t.Constant() {
		return 0, false
	}
	zero := time.Unix(0, 0)
	until, err := duration.After(zero, strings.Trim(t.String(), `"`))
	return until.Sub(zero), err == nil
}

var backoffs = map[string]program.Backoff{
	"constant": program.BackoffConstant, "linear": program.BackoffLinear, "exponential": program.BackoffExponential,
}

func (c *compiler) backoff(at string, v any) (res program.Backoff) {
	m := c.object(at, v, shape{fields: keys(backoffs)})
	if m != nil && len(m) != 1 {
		c.report(at, codeType, "one of constant, exponential, linear", "backoff has %d forms, not one", len(m))
	}
	for _, name := range keys(m) {
		res = backoffs[name]
		p := join(at, name)
		for _, f := range keys(c.anyObject(p, m[name])) {
			c.reportKey(join(p, f), codeUnknown, "write "+name+": {}", "field %s is not known here", clip(f))
		}
	}
	return res
}

func (c *compiler) retryLimit(at string, v any, vars scope, to *program.RetryPolicy) {
	m := c.object(at, v, shape{fields: []string{"attempt", "duration"}})
	if v, ok := m["duration"]; ok {
		to.For = c.duration(join(at, "duration"), v, vars)
	}
	attempt, ok := m["attempt"]
	if !ok {
		return
	}
	at = join(at, "attempt")
	m = c.object(at, attempt, shape{fields: []string{"count", "duration"}})
	if v, ok := m["duration"]; ok {
		to.AttemptFor = c.duration(join(at, "duration"), v, vars)
	}
	if v, ok := m["count"]; ok {
		number, _ := v.(json.Number)
		n, err := strconv.Atoi(string(number))
		if err != nil || n < 0 || n > program.MaxRetries {
			c.report(join(at, "count"), codeType, "how many retries, from 0 to "+strconv.Itoa(program.MaxRetries), "%s is not a number of retries", quoted(v))
		}
		to.Limited, to.Count = true, n
	}
}

func (c *compiler) jitter(at string, v any, vars scope, to *program.RetryPolicy) {
	m := c.object(at, v, shape{fields: []string{"from", "to"}, required: []string{"from", "to"}})
	if v, ok := m["from"]; ok {
		to.JitterFrom = c.duration(join(at, "from"), v, vars)
	}
	if v, ok := m["to"]; ok {
		to.JitterTo = c.duration(join(at, "to"), v, vars)
	}
}

package openworkflow

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/duration"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/nearest"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/program"
)

// Names that a call can have beside those of functions.
const (
	callHTTP       = "http"
	callAPI        = "openapi"
	callPerson     = "humanTask"
	callEach       = "forEach"
	callAck        = "acknowledged"
	callCompensate = "compensate"
)

// reserved are the protocols of the language outside the profile.
var reserved = map[string]bool{"asyncapi": true, "grpc": true, "a2a": true, "mcp": true}

var functionName = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?$`)

// callTask compiles a call, of whatever it calls.
func (c *compiler) callTask(at string, m map[string]any, n *program.Node, vars scope, _ []string) {
	if name, task, ok := c.function(at, m); ok {
		c.expand(at, name, task, m, n, vars)
		return
	}
	r := c.call(at, m, vars, nil, true)
	n.Kind, n.Call, n.Person = r.kind, r.call, r.person
	compensations{c}.once(at, n)
	if r.args == nil {
		return
	}
	if n.Input != nil {
		c.reportKey(join(at, "input"), codeUnsupported, "put the fields into with", "input.from together with arguments of a named function is outside the supported profile")
		return
	}
	n.Input = r.args
}

// called is what a call compiles to. Args are the arguments of a named
// function, which it sees as its data.
type called struct {
	kind   program.NodeKind
	call   *program.Call
	person *program.Person
	args   *jq.Template
}

// call compiles {call, with}; inside are the named functions around it. With
// quiet, the findings in a named function are left out: they were reported at
// the function itself.
func (c *compiler) call(at string, m map[string]any, vars scope, inside []string, quiet bool) (r called) {
	r.kind = program.KindCall
	v, ok := m["call"]
	if !ok {
		return r
	}
	name, ok := v.(string)
	if !ok {
		c.wrong(join(at, "call"), "a string: the name of a function", v)
		return r
	}
	p := join(at, "with")
	with, hasWith := m["with"]
	if !hasWith {
		with, p = map[string]any{}, at
	} else if c.anyObject(p, with) == nil {
		return r
	}
	if found := cataloged.FindStringSubmatch(name); found != nil && found[3] == defaultCatalog {
		name = found[1] + ":" + found[2]
		if own, ok := ours[name]; ok {
			name = own
		} else {
			r.call = &program.Call{Target: name, With: c.template(p, with, vars)}
			return r
		}
	}
	own := identity{}
	if name != callPerson && name != callEach && name != callAck && name != callCompensate && !isStep(c, name) {
		own, with = c.identity(p, with, vars)
		defer func() { own.of(&r) }()
	}
	switch {
	case name == callHTTP:
		r.call = &program.Call{Target: name, With: c.http(p, with, vars), NewKey: safe(asObject(with)["method"])}
	case name == callAPI:
		r.call = &program.Call{Target: callHTTP}
		r.call.With, r.call.NewKey = c.openapi(p, with, vars)
	case name == callPerson:
		r.kind = program.KindPerson
		r.person = &program.Person{With: c.person(p, with, vars)}
	case name == callEach:
		r.kind = program.KindEach
		r.call = c.each(p, with, vars, inside)
	case name == callAck:
		r.call = c.acknowledged(p, with, vars, inside)
	case name == callCompensate:
		r.kind = program.KindCompensate
		c.compensation(at, with)
	case isStep(c, name):
		r.call = stepCalls{c}.compile(p, name, with, vars)
	case reserved[name]:
		c.report(join(at, "call"), codeUnsupported, "", "calls of %s are outside the supported profile", name)
	case cataloged.MatchString(name) || strings.Contains(name, "://") || c.functions[name] != nil && !plainCall(asObject(c.functions[name])):
		c.report(join(at, "call"), codeUnsupported, "call it in a task of its own", "a function that is a task, called by %s, is outside the supported profile", quoted(m["call"]))
	case strings.ContainsAny(name, ":@/"):
		c.report(join(at, "call"), codeType, "write name:version@catalog, such as human-task:1.0.0@default", "%s is not a name of a function", clip(name))
	case !functionName.MatchString(name):
		c.report(join(at, "call"), codeType, "letters, digits, dots, hyphens", "%s is not a name of a function", clip(name))
	case c.functions[name] != nil && slices.Contains(inside, name):
		// A circle, which has been reported at the functions in it.
	case c.functions[name] != nil:
		return c.named(at, name, with, hasWith, vars, inside, quiet)
	default:
		c.nearly(join(at, "call"), name)
		c.register(join(at, "call"), name)
		r.call = &program.Call{Target: name, With: c.template(p, with, vars)}
	}
	return r
}

// identity is what the author says about the identity of the effect of a call.
type identity struct {
	key    *jq.Template // the author's own key; nil = that of the effect
	newKey bool
}

// identity takes from the arguments of a call what is not the callee's.
func (c *compiler) identity(at string, with any, vars scope) (own identity, rest any) {
	m := asObject(with)
	key, hasKey := m["idempotencyKey"]
	again, hasNew := m["newKey"]
	if !hasKey && !hasNew {
		return own, with
	}
	m = maps.Clone(m)
	delete(m, "idempotencyKey")
	delete(m, "newKey")
	if s, ok := key.(string); hasKey && (!ok || s == "") {
		c.wrong(join(at, "idempotencyKey"), "a string with content", key)
	} else if hasKey {
		own.key = c.template(join(at, "idempotencyKey"), key, vars)
	}
	if b, ok := again.(bool); hasNew && !ok {
		c.wrong(join(at, "newKey"), "a boolean", again)
	} else {
		own.newKey = b
	}
	return own, m
}

// safe reports whether a method has no effect, so that a retry may send another
// request whatever became of the one before.
func safe(method any) bool {
	s, _ := method.(string)
	return slices.Contains([]string{"GET", "HEAD", "OPTIONS", "TRACE"}, strings.ToUpper(s))
}

func (own identity) of(r *called) {
	if r.call == nil {
		return
	}
	r.call.NewKey = r.call.NewKey || own.newKey
	if own.key != nil {
		r.call.Key = own.key
	}
}

// asObject is v as an object, or nil.
func asObject(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// register notes a call of a function that a program has to register.
func (c *compiler) register(at, name string) {
	if _, noted := c.registered[name]; noted {
		return
	}
	if c.registered == nil {
		c.registered = map[string]problem.Place{}
	}
	p := c.at[at]
	c.registered[name] = problem.Place{File: c.file, Line: p.line, Column: p.column, Pointer: at}
}

// callable are the names of functions that a document may call without a program
// that registers them.
func (c *compiler) callable() []string {
	return append(keys(c.functions), "http", "openapi", callPerson, callEach, callAck, callCompensate, "sql", "plsql", "go")
}

// nearly reports a name that is in all likelihood a mistyped one of the
// language: any other name is a function that a worker may serve.
func (c *compiler) nearly(at, name string) {
	known := []string{callPerson, callEach, callAck}
	if n, ok := nearest.Name(name, known); ok && strings.EqualFold(n, strings.NewReplacer("-", "", "_", "").Replace(name)) {
		c.report(at, codeType, "did you mean "+n+"?", "function %s is not known", clip(name))
	}
}

// named compiles a call of a function under use.functions.
func (c *compiler) named(at, name string, with any, hasWith bool, vars scope, inside []string, quiet bool) called {
	f, ok := c.functions[name].(map[string]any)
	if !ok {
		return called{kind: program.KindCall}
	}
	var args *jq.Template
	if hasWith {
		args = c.template(join(at, "with"), with, vars)
		vars = scope{"$context", "$input", "$workflow", "$task", "$runtime"}
	}
	target := join("/use/functions", name)
	findings, dropped := len(c.findings), c.dropped
	r := c.call(target, f, vars, append(slices.Clone(inside), name), quiet)
	if quiet || len(inside) > 0 {
		c.findings, c.dropped = c.findings[:findings], dropped
	}
	if args != nil {
		if r.args != nil {
			c.report(join(at, "with"), codeUnsupported, "", "arguments to a function that passes arguments to another are outside the supported profile")
		}
		r.args = args
	}
	return r
}

// http compiles the arguments of an HTTP call to a template that gives
// {method, uri, headers, query, body, output, redirect}.
func (c *compiler) http(at string, v any, vars scope) *jq.Template {
	m := c.object(at, v, shape{
		fields:   []string{"method", "endpoint", "headers", "query", "body", "output", "redirect"},
		required: []string{"method", "endpoint"},
	})
	res := map[string]any{"output": "content", "redirect": false}
	before := len(c.findings) + c.dropped
	late := &lateBound{c: c}
	if v, ok := m["method"]; ok {
		res["method"] = c.method(join(at, "method"), v, vars)
	}
	if v, ok := m["endpoint"]; ok {
		res["uri"] = c.endpoint(join(at, "endpoint"), v, vars)
		if path, ok := pathTemplate(v); ok {
			res["path"] = path
		}
		if e, ok := v.(map[string]any); ok && e["authentication"] != nil {
			res["authentication"] = c.authentication(join(join(at, "endpoint"), "authentication"), e["authentication"], vars, late)
		}
	}
	for _, f := range []string{"headers", "query"} {
		v, ok := m[f]
		if !ok {
			continue
		}
		if s, isText := v.(string); isText {
			if _, ok := jq.Wrapped(s); !ok {
				c.wrong(join(at, f), "an object or ${ an expression }", v)
			}
		} else {
			c.texts(join(at, f), v)
		}
		v = late.bind(join(at, f), "/"+f, v)
		c.probe(join(at, f), v, vars)
		res[f] = v
	}
	if v, ok := m["body"]; ok {
		v = late.bind(join(at, "body"), "/body", v)
		c.probe(join(at, "body"), v, vars)
		res["body"] = v
	}
	c.outcome(at, m, res)
	late.add(join(at, "endpoint"), res)
	if len(c.findings)+c.dropped > before {
		return nil
	}
	return c.template(at, res, vars)
}

// texts checks an object whose values are strings.
func (c *compiler) texts(at string, v any) {
	m := c.anyObject(at, v)
	for _, k := range keys(m) {
		c.text(join(at, k), m[k])
	}
}

// outcome takes what of the answer the author wants.
func (c *compiler) outcome(at string, m, res map[string]any) {
	if v, ok := m["output"]; ok {
		res["output"] = c.oneOf(join(at, "output"), v, "content", "response", "raw")
	}
	if v, ok := m["redirect"]; ok {
		if _, isBool := v.(bool); !isBool {
			c.wrong(join(at, "redirect"), "a boolean", v)
		}
		res["redirect"] = v
	}
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}

func (c *compiler) method(at string, v any, vars scope) string {
	s := c.text(at, v)
	if _, ok := jq.Wrapped(s); ok {
		c.probe(at, s, vars)
		return s
	}
	if upper := strings.ToUpper(s); s != "" && !slices.Contains(methods, upper) {
		c.oneOf(at, upper, methods...)
	}
	return strings.ToUpper(s)
}

// endpoint gives the URI, or the expression that makes it.
func (c *compiler) endpoint(at string, v any, vars scope) string {
	if m, ok := v.(map[string]any); ok {
		c.object(at, m, shape{
			fields: []string{"uri", "authentication"}, required: []string{"uri"},
		})
		at, v = join(at, "uri"), m["uri"]
		if _, ok := m["uri"]; !ok {
			return ""
		}
	}
	s, ok := v.(string)
	if !ok {
		c.wrong(at, "a string: a URI", v)
		return ""
	}
	if _, ok := jq.Wrapped(s); ok {
		c.probe(at, s, vars)
		return s
	}
	return c.uri(at, s)
}

// each compiles the arguments of a fan-out: {in, each, call, with, compensate}.
func (c *compiler) each(at string, v any, vars scope, inside []string) *program.Call {
	m := c.object(at, v, shape{fields: []string{"in", "each", "call", "with", "compensate"}, required: []string{"in", "call"}})
	res := &program.Call{Each: c.variable(join(at, "each"), m["each"], "item")}
	if in, ok := m["in"]; ok {
		switch in.(type) {
		case string:
			res.In = c.expression(join(at, "in"), in, vars)
		case []any:
			res.In = c.template(join(at, "in"), in, vars)
		default:
			c.wrong(join(at, "in"), "an array or an expression", in)
		}
	}
	if inner := c.inner(at, m, vars.with(res.Each), inside, callEach); inner != nil {
		res.Target, res.With, res.Ack, res.Detached = inner.Target, inner.With, inner.Ack, inner.Detached
		res.Key, res.NewKey = inner.Key, inner.NewKey
	}
	compensations{c}.ofItem(at, m, res, vars)
	return res
}

// inner compiles the {call, with} among the arguments of our function outer;
// nil when there is something wrong with it.
func (c *compiler) inner(at string, m map[string]any, vars scope, inside []string, outer string) *program.Call {
	p := join(at, "call")
	r := c.call(at, m, vars, inside, true)
	name, _ := m["call"].(string)
	switch {
	case slices.Contains(inside, name):
		c.report(p, codeType, "", "function %s calls itself, directly or by way of another", clip(name))
	case r.kind != program.KindCall || outer == callAck && r.call != nil && r.call.Ack != nil:
		c.report(p, codeUnsupported, "call http or a function", "%s of %s is outside the supported profile", outer, quoted(m["call"]))
	case r.call != nil && engine.Inside(r.call.Target):
		c.report(p, codeUnsupported, "call it in a for, or in a task of its own", "%s of a step in the transaction, %s, is outside the supported profile", outer, name)
	case r.args != nil:
		c.report(p, codeUnsupported, "give the function no with here", "arguments of a named function in %s are outside the supported profile", outer)
	default:
		return r.call
	}
	return nil
}

// ackWithin is when an acknowledgement is expected where the author does not
// say.
const ackWithin = "PT5M"

// ackTime takes the time that a consumer has for an acknowledgement.
func ackTime(c *compiler, at string, v any, vars scope) *jq.Template {
	text, _ := v.(string)
	if until, err := duration.After(time.Unix(0, 0), text); err == nil && until.Equal(time.Unix(0, 0)) {
		c.report(at, codeType, "write PT5M", "an acknowledgement cannot come within no time")
	}
	return c.duration(at, v, vars)
}

// acknowledged compiles a call whose result is what the consumer acknowledges:
// {call, with, within, await}.
func (c *compiler) acknowledged(at string, v any, vars scope, inside []string) *program.Call {
	m := c.object(at, v, shape{fields: []string{"call", "with", "within", "await"}, required: []string{"call"}})
	res := &program.Call{Ack: jq.Constant(ackWithin)}
	if within, ok := m["within"]; ok {
		res.Ack = ackTime(c, join(at, "within"), within, vars)
	}
	if await, ok := m["await"]; ok {
		waits, isBool := await.(bool)
		if !isBool {
			c.wrong(join(at, "await"), "a boolean", await)
		}
		res.Detached = !waits
	}
	if inner := c.inner(at, m, vars, inside, callAck); inner != nil {
		res.Target, res.With, res.Key, res.NewKey = inner.Target, inner.With, inner.Key, inner.NewKey
	}
	return res
}

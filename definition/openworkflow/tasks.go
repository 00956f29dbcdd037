package openworkflow

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/nearest"
	"github.com/aqueduct-engine/aqueduct/program"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// common are the fields that every task has.
var common = []string{"if", "input", "output", "export", "timeout", "then", "metadata"}

// kind is one kind of task: the field that says so, and what else it has.
type kind struct {
	name        string
	fields      []string
	required    []string
	unsupported map[string]string
	compile     func(c *compiler, at string, m map[string]any, n *program.Node, vars scope, names []string)
}

// kinds are the supported kinds of tasks, in the order in which they are
// looked for: a for task has a do as well.
func kinds() []kind {
	return []kind{
		{name: "for", fields: []string{"while", "do"}, required: []string{"do"}, compile: (*compiler).loop},
		{name: "try", fields: []string{"catch"}, required: []string{"catch"}, compile: (*compiler).try},
		{name: "fork", compile: (*compiler).fork},
		{name: "call", fields: []string{"with"}, compile: (*compiler).callTask},
		{name: "listen", fields: []string{"foreach"}, compile: (*compiler).listen},
		{name: "raise", compile: (*compiler).raise},
		{name: "set", compile: (*compiler).set},
		{name: "switch", compile: (*compiler).choose},
		{name: "wait", compile: (*compiler).wait},
		{name: "emit", compile: (*compiler).emit},
		{name: "run", compile: (*compiler).run},
		{name: "do", compile: (*compiler).sequence},
	}
}

// list compiles a list of tasks.
func (c *compiler) list(at string, v any, vars scope) *program.Node {
	n := &program.Node{Pointer: at, Kind: program.KindList}
	items, ok := v.([]any)
	if !ok {
		c.wrong(at, "a list of tasks", v)
		return n
	}
	if len(items) == 0 {
		c.report(at, codeMissing, "", "list has no tasks")
	}
	names := make([]string, 0, len(items))
	first := map[string]int{}
	for i, x := range items {
		p := item(at, i)
		m, ok := x.(map[string]any)
		if !ok {
			c.wrong(p, "a task: its name, and its fields below", x)
			continue
		}
		if len(m) != 1 {
			c.report(p, codeType, "begin each task with a dash of its own", "list item has %d tasks, not one", len(m))
			continue
		}
		name := keys(m)[0]
		if j, twice := first[name]; twice {
			c.reportKey(join(p, name), codeDuplicate, "the first one is item "+strconv.Itoa(j), "task %s is in the list twice", clip(name))
		}
		first[name] = i
		names = append(names, name)
	}
	for i, x := range items {
		if m, ok := x.(map[string]any); ok && len(m) == 1 {
			name := keys(m)[0]
			n.List = append(n.List, c.extend(c.task(join(item(at, i), name), name, m[name], vars, names)))
		}
	}
	return n
}

// task compiles one task; names are those of its list.
func (c *compiler) task(at, name string, v any, vars scope, names []string) *program.Node {
	n := &program.Node{Pointer: at, Name: name}
	bounded(c, at, "task", name, maxName)
	bounded(c, at, "the place of the task", at, MaxPointer)
	switch name {
	case "continue", "exit", "end":
		c.reportKey(at, codeType, "choose another name", "%s is a flow directive and cannot name a task", clip(name))
	}
	m := c.anyObject(at, v)
	if m == nil {
		return n
	}
	k := c.kindOfTask(at, m)
	if k == nil {
		return n
	}
	n.Kind = map[string]program.NodeKind{
		"for": program.KindFor, "fork": program.KindFork, "try": program.KindTry, "call": program.KindCall, "listen": program.KindListen, "raise": program.KindRaise,
		"set": program.KindSet, "switch": program.KindSwitch, "wait": program.KindWait, "do": program.KindDo,
		"emit": program.KindEmit, "run": program.KindRun,
	}[k.name]
	fields := append(append([]string{k.name}, k.fields...), common...)
	c.object(at, m, shape{fields: fields, required: append([]string{k.name}, k.required...), unsupported: k.unsupported})
	c.common(at, m, n, vars, names)
	k.compile(c, at, m, n, vars, names)
	return n
}

// kindOfTask finds what kind of task m is, and reports when it is none.
func (c *compiler) kindOfTask(at string, m map[string]any) *kind {
	var known []string
	for _, k := range kinds() {
		if _, ok := m[k.name]; ok {
			return &k
		}
		known = append(known, k.name)
	}
	hint := "a task has one of " + strings.Join(known, ", ")
	for _, k := range keys(m) {
		if n, ok := nearest.Name(k, known); ok {
			hint = "did you mean " + n + " instead of " + k + "?"
			break
		}
	}
	c.reportKey(at, codeMissing, hint, "task does not say what it does")
	return nil
}

// common compiles the fields that every task has.
func (c *compiler) common(at string, m map[string]any, n *program.Node, vars scope, names []string) {
	if v, ok := m["if"]; ok {
		n.If = c.expression(join(at, "if"), v, vars)
	}
	if v, ok := m["input"]; ok {
		n.Input = c.filter(join(at, "input"), v, "from", vars)
		n.Schemas.Input = c.schemaOf(join(at, "input"), v)
	}
	if v, ok := m["output"]; ok {
		n.Output = c.filter(join(at, "output"), v, "as", vars)
		n.Schemas.Output = c.schemaOf(join(at, "output"), v)
	}
	if v, ok := m["export"]; ok {
		n.Export = c.filter(join(at, "export"), v, "as", vars.with("output"))
		n.Schemas.Export = c.schemaOf(join(at, "export"), v)
	}
	if v, ok := m["timeout"]; ok {
		n.Timeout = c.timeout(join(at, "timeout"), v, vars, true)
	}
	if v, ok := m["then"]; ok {
		n.Then = c.flow(join(at, "then"), v, names)
	}
	if v, ok := m["metadata"]; ok {
		c.metadata(join(at, "metadata"), v, n, vars)
	}
}

// flow compiles a flow directive.
func (c *compiler) flow(at string, v any, names []string) program.Flow {
	s, ok := v.(string)
	if !ok {
		c.wrong(at, "continue, exit, end or a string that names a task", v)
		return program.Flow{}
	}
	switch s {
	case "continue":
		return program.Flow{Directive: program.FlowContinue}
	case "exit":
		return program.Flow{Directive: program.FlowExit}
	case "end":
		if c.hooking {
			c.report(at, codeUnsupported, "write exit to leave out the hooks behind it; a transition to a state of category: final completes an instance",
				"a hook would end the instance between two states")
		}
		return program.Flow{Directive: program.FlowEnd}
	}
	for _, n := range names {
		if n == s {
			return program.Flow{Directive: program.FlowTo, Target: s}
		}
	}
	hint := "continue, exit, end, or a task of the same list"
	if n, ok := nearest.Name(s, append([]string{"continue", "exit", "end"}, names...)); ok {
		hint = "did you mean " + n + "?"
	}
	c.report(at, codeTarget, hint, "no task of this list is named %s", clip(s))
	return program.Flow{}
}

func (c *compiler) sequence(at string, m map[string]any, n *program.Node, vars scope, _ []string) {
	n.Body = c.list(join(at, "do"), m["do"], vars)
}

func (c *compiler) set(at string, m map[string]any, n *program.Node, vars scope, _ []string) {
	at = join(at, "set")
	switch v := m["set"].(type) {
	case string:
		n.Set = c.expression(at, v, vars)
	case map[string]any:
		if len(v) == 0 {
			c.report(at, codeMissing, "", "set has no fields")
		}
		n.Set = c.template(at, v, vars)
	default:
		c.wrong(at, "an object or an expression", v)
	}
}

func (c *compiler) choose(at string, m map[string]any, n *program.Node, vars scope, names []string) {
	at = join(at, "switch")
	cases, ok := m["switch"].([]any)
	if !ok || len(cases) == 0 {
		c.wrong(at, "a list of cases", m["switch"])
		return
	}
	fallback := ""
	for i, x := range cases {
		p := item(at, i)
		named := c.anyObject(p, x)
		if len(named) != 1 {
			if named != nil {
				c.report(p, codeType, "begin each case with a dash of its own", "list item has %d cases, not one", len(named))
			}
			continue
		}
		name := keys(named)[0]
		p = join(p, name)
		body := c.object(p, named[name], shape{fields: []string{"when", "then"}, required: []string{"then"}})
		arm := program.Case{Name: name}
		if v, ok := body["when"]; ok {
			arm.When = c.expression(join(p, "when"), v, vars)
		} else if body != nil {
			if fallback != "" {
				c.reportKey(p, codeType, "give all cases but one a when", "case %s is a default, and so is %s", clip(name), clip(fallback))
			}
			fallback = name
		}
		if v, ok := body["then"]; ok {
			arm.Then = c.flow(join(p, "then"), v, names)
		}
		n.Cases = append(n.Cases, arm)
	}
}

func (c *compiler) loop(at string, m map[string]any, n *program.Node, vars scope, _ []string) {
	p := join(at, "for")
	f := c.object(p, m["for"], shape{fields: []string{"each", "in", "at"}, required: []string{"in"}})
	n.For = &program.For{
		Each: c.variable(join(p, "each"), f["each"], "item"),
		At:   c.variable(join(p, "at"), f["at"], "index"),
	}
	if n.For.Each == n.For.At {
		c.report(p, codeType, "", "item and index have the same variable $%s", n.For.Each)
	}
	switch v := f["in"].(type) {
	case nil:
		if _, ok := f["in"]; ok {
			c.wrong(join(p, "in"), "an array or an expression", nil)
		}
	case string:
		n.For.In = c.expression(join(p, "in"), v, vars)
	case []any:
		n.For.In = c.template(join(p, "in"), v, vars)
	default:
		c.wrong(join(p, "in"), "an array or an expression", v)
	}
	inner := vars.with(n.For.Each, n.For.At)
	if v, ok := m["while"]; ok {
		n.For.While = c.expression(join(at, "while"), v, inner)
	}
	if v, ok := m["do"]; ok {
		n.Body = c.list(join(at, "do"), v, inner)
	}
}

func (c *compiler) raise(at string, m map[string]any, n *program.Node, vars scope, _ []string) {
	at = join(at, "raise")
	r := c.object(at, m["raise"], shape{fields: []string{"error"}, required: []string{"error"}})
	at = join(at, "error")
	if v, ok := r["error"]; !ok {
		return
	} else if name, ok := v.(string); ok {
		n.Raise = refer(c, at, "errors", name, c.reusable.errors)
	} else {
		n.Raise = c.failure(at, v, vars)
	}
}

// failure compiles the error of a raise.
func (c *compiler) failure(at string, v any, vars scope) *program.Raise {
	e := c.object(at, v, shape{fields: errorFields, required: []string{"type", "status"}})
	if s, ok := e["type"].(string); ok {
		if _, ok := jq.Wrapped(s); ok {
		} else if bounded(c, join(at, "type"), "the type", s, snapshot.MaxErrorType); s == "" || strings.ContainsAny(s, " \t\r\n") {
			c.report(join(at, "type"), codeType, "write a URI, such as https://shop.example/errors/out-of-stock", "%s is not the type of an error", clip(s))
		}
	}
	field := func(name string) *jq.Template {
		v, ok := e[name]
		if !ok {
			return nil
		}
		p := join(at, name)
		if name == "status" {
			c.status(p, v)
		} else if _, ok := v.(string); !ok {
			c.wrong(p, "a string", v)
			return nil
		}
		return c.template(p, v, vars)
	}
	return &program.Raise{
		Type: field("type"), Status: field("status"), Title: field("title"), Detail: field("detail"), Instance: field("instance"),
	}
}

var errorFields = []string{"type", "status", "title", "detail", "instance"}

// status checks a status: a whole number, or an expression.
func (c *compiler) status(at string, v any) {
	if s, ok := v.(string); ok {
		if _, ok := jq.Wrapped(s); ok {
			return
		}
	}
	number, _ := v.(json.Number)
	if i, err := strconv.Atoi(string(number)); err != nil || i < 100 || i > 599 {
		c.report(at, codeType, "a number from 100 to 599", "%s is not a status", quoted(v))
	}
}

func quoted(v any) string {
	switch v := v.(type) {
	case string:
		return clip(v)
	case json.Number:
		return clip(string(v))
	}
	return kindOf(v)
}

func (c *compiler) try(at string, m map[string]any, n *program.Node, vars scope, names []string) {
	n.Body = c.list(join(at, "try"), m["try"], vars)
	p := join(at, "catch")
	v, ok := m["catch"]
	if !ok {
		return
	}
	catch := c.object(p, v, shape{
		fields: []string{"errors", "as", "when", "exceptWhen", "retry", "do", "then"},
	})
	n.Catch = &program.Catch{As: c.variable(join(p, "as"), catch["as"], "error")}
	if v, ok := catch["errors"]; ok {
		n.Catch.With = c.errors(join(p, "errors"), v, vars)
	}
	inner := vars.with(n.Catch.As)
	if v, ok := catch["when"]; ok {
		n.Catch.When = c.expression(join(p, "when"), v, inner)
	}
	if v, ok := catch["exceptWhen"]; ok {
		n.Catch.ExceptWhen = c.expression(join(p, "exceptWhen"), v, inner)
	}
	if v, ok := catch["retry"]; ok {
		n.Catch.Retry = c.retry(join(p, "retry"), v, inner)
	}
	if v, ok := catch["do"]; ok {
		c.catches++
		n.Catch.Body = c.list(join(p, "do"), v, inner)
		c.catches--
	}
	if v, ok := catch["then"]; ok {
		then := c.flow(join(p, "then"), v, names)
		n.Catch.Then = &then
	}
}

// errors compiles the filter of a catch.
func (c *compiler) errors(at string, v any, vars scope) map[string]*jq.Template {
	m := c.object(at, v, shape{fields: []string{"with"}})
	with, ok := m["with"]
	if !ok {
		return nil
	}
	at = join(at, "with")
	filter := c.object(at, with, shape{fields: errorFields})
	res := map[string]*jq.Template{}
	for _, f := range errorFields {
		v, ok := filter[f]
		if !ok {
			continue
		}
		if f == "status" {
			c.status(join(at, f), v)
		} else if _, ok := v.(string); !ok {
			c.wrong(join(at, f), "a string", v)
			continue
		}
		res[f] = c.template(join(at, f), v, vars)
	}
	return res
}

func (c *compiler) wait(at string, m map[string]any, n *program.Node, vars scope, _ []string) {
	n.Wait = c.duration(join(at, "wait"), m["wait"], vars)
}

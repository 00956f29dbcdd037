package openworkflow

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/program"
)

// stepFields are the calls that are steps in the transaction of their turn, and which
// argument names what each runs: a name that the operator has listed, written out. No
// text of a document is ever run.
var stepFields = map[string]string{"sql": "statement", "plsql": "procedure", "go": "function"}

var procedureName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_$#]*(\.[a-zA-Z][a-zA-Z0-9_$#]*){0,2}$`)

// maxOut bounds how many out-parameters a call of a procedure names.
const maxOut = 32

// isStep reports whether a call is a step: its document may have a function of that
// name, which comes first.
func isStep(c *compiler, name string) bool { return stepFields[name] != "" && c.functions[name] == nil }

// stepCalls compiles calls of steps.
type stepCalls struct{ *compiler }

// compile compiles the arguments of a step: its name, args and, of a procedure, out.
func (c stepCalls) compile(at, kind string, v any, vars scope) *program.Call {
	field := stepFields[kind]
	fields := []string{field, "args"}
	if kind == "plsql" {
		fields = append(fields, "out")
	}
	m := c.object(at, v, shape{fields: fields, required: []string{field}})
	if m == nil {
		return &program.Call{}
	}
	name := c.text(join(at, field), m[field])
	names, hint := functionName, "letters, digits, dots, hyphens, and no expression: what is run is not for data to say"
	if kind == "plsql" {
		names, hint = procedureName, "write PACKAGE.PROCEDURE, and no expression: what is run is not for data to say"
	}
	if _, there := m[field]; there && !names.MatchString(name) {
		c.report(join(at, field), codeType, hint, "%s is not the name of a %s", clip(name), field)
	}
	if kind == "plsql" {
		name = strings.ToUpper(name)
	}
	input, step := map[string]any{}, definition.Step{Target: kind + "/" + name}
	if args, ok := m["args"]; ok {
		if text, isText := args.(string); isText {
			if _, ok := jq.Wrapped(text); !ok {
				c.wrong(join(at, "args"), "an object or ${ an expression }", args)
			}
			step.Open = true
		} else if given := c.anyObject(join(at, "args"), args); given != nil {
			if kind == "plsql" {
				c.parameters(join(at, "args"), keys(given))
			}
			step.Args, step.Known = keys(given), known(given)
		}
		input["args"] = args
	}
	if out, ok := m["out"]; ok {
		list, isList := out.([]any)
		if !isList || len(list) == 0 || len(list) > maxOut {
			c.wrong(join(at, "out"), "an array of 1 to 32 names", out)
		}
		for i, v := range list {
			name := c.text(item(join(at, "out"), i), v)
			c.parameters(item(join(at, "out"), i), []string{name})
			step.Out = append(step.Out, name)
		}
		input["out"] = out
	}
	c.note(at, step)
	return &program.Call{Target: step.Target, With: c.template(at, input, vars)}
}

// note keeps a step for who publishes the document.
func (c stepCalls) note(at string, step definition.Step) {
	if slices.ContainsFunc(c.steps, func(s definition.Called) bool { return s.At("").Pointer == at }) {
		return // of a function that is called twice
	}
	source := c.source
	c.steps = append(c.steps, definition.Called{Step: step, At: func(below string) problem.Place {
		pointer := at + below
		p, ok := source.keys[pointer]
		if !ok {
			p, ok = source.at[pointer]
		}
		if !ok {
			p = source.at[at]
		}
		return problem.Place{File: source.file, Line: p.line, Column: p.column, Pointer: pointer}
	}})
}

// known are the fields that no expression has a part in, as JSON.
func known(fields map[string]any) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for name, v := range fields {
		if raw, err := jq.Encode(v, jq.DefaultBytes); err == nil && !dynamic(v) {
			all[name] = raw
		}
	}
	return all
}

// dynamic reports whether there is an expression in a value.
func dynamic(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, dynamic)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), dynamic)
	}
	return computed(v)
}

// parameters checks names of parameters of a procedure.
func (c stepCalls) parameters(at string, names []string) {
	for _, n := range names {
		if n != "" && (!procedureName.MatchString(n) || strings.Contains(n, ".")) {
			c.report(at, codeType, "letters, digits, _, $ and #", "%s is not the name of a parameter", clip(n))
		}
	}
}

package openworkflow

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/humantask"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/program"
)

// person compiles the arguments of a human task. What stands in the document
// is checked here; what an expression makes, the engine checks when it asks.
func (c *compiler) person(at string, v any, vars scope) *jq.Template {
	m := c.object(at, v, shape{fields: program.PersonFields})
	before := len(c.findings) + c.dropped
	res := map[string]any{}
	for _, f := range keys(m) {
		res[f] = c.argument(f, join(at, f), m[f], vars)
	}
	c.together(at, m)
	if len(c.findings)+c.dropped > before {
		return nil
	}
	return c.template(at, res, vars)
}

// argument checks one argument and returns it as the engine reads it.
func (c *compiler) argument(field, at string, v any, vars scope) any {
	if computed(v) {
		c.probe(at, v, vars)
		return v
	}
	switch x := program.PersonArguments[field]; {
	case x.Names:
		c.names(at, v)
	case field == "assignee" && v == nil: // nobody
	case x.Max > 0:
		c.name(at, v, x.Max)
	}
	switch field {
	case "priority":
		number, _ := v.(json.Number)
		if n, err := strconv.Atoi(string(number)); err != nil || n < 0 || n > humantask.MaxPriority {
			c.report(at, codeType, "", "want a whole number from 0 to %d, not %s", humantask.MaxPriority, quoted(v))
		}
	case "form":
		c.form(at, v)
	case "due":
		return c.due(at, v, vars)
	}
	c.probe(at, v, vars)
	return v
}

// computed reports whether a value is all one expression.
func computed(v any) bool {
	s, ok := v.(string)
	if ok {
		_, ok = jq.Wrapped(s)
	}
	return ok
}

// together checks arguments that need each other.
func (c *compiler) together(at string, m map[string]any) {
	if _, ok := m["escalateTo"]; ok && m["due"] == nil {
		c.reportKey(join(at, "escalateTo"), codeMissing, "write due: {after: a duration}", "escalateTo needs due: it says when")
	}
	users, _ := m["excludedUsers"].([]any)
	if a, ok := m["assignee"].(string); ok && !computed(a) && slices.Contains(users, any(a)) {
		c.report(join(at, "assignee"), codeType, "", "assignee %s is one of excludedUsers", clip(a))
	}
}

// name checks a text of at most so many characters.
func (c *compiler) name(at string, v any, most int) {
	s, ok := v.(string)
	switch n := utf8.RuneCountInString(s); {
	case !ok:
		c.wrong(at, "a string", v)
	case n == 0 || n > most:
		c.report(at, codeType, "", "want a text of 1 to %d characters, not %d", most, n)
	}
}

// names checks a list of users, groups or outcomes.
func (c *compiler) names(at string, v any) {
	list, ok := v.([]any)
	if !ok {
		c.wrong(at, "a list of strings", v)
		return
	}
	var known []string
	for i, x := range list {
		if computed(x) {
			continue
		}
		c.name(item(at, i), x, humantask.MaxName)
		if s, ok := x.(string); ok && s != "" && utf8.RuneCountInString(s) <= humantask.MaxName {
			known = append(known, s)
		}
	}
	if err := humantask.CheckNames(known); err != nil {
		c.report(at, codeType, "", "the list %s", err)
	}
}

// due takes {after: a duration}; the engine reads ISO 8601.
func (c *compiler) due(at string, v any, vars scope) any {
	m := c.object(at, v, shape{
		fields: program.DueFields, required: program.DueFields, unsupported: map[string]string{"calendar": "business calendars"},
	})
	after, ok := m["after"]
	if !ok {
		return nil
	}
	p := join(at, "after")
	if units, ok := after.(map[string]any); ok {
		return map[string]any{"after": c.units(p, units)}
	}
	c.duration(p, after, vars)
	return map[string]any{"after": after}
}

// form checks the form of a human task, as far as it is known before an
// instance runs: {ref, version} or {schema}.
func (c *compiler) form(at string, v any) {
	m := c.object(at, v, shape{fields: program.FormFields})
	if m == nil {
		return
	}
	ref, hasRef := m["ref"]
	doc, hasSchema := m["schema"]
	version, hasVersion := m["version"]
	switch {
	case hasRef == hasSchema:
		c.report(at, codeMissing, "", "a form has either a ref with its version, or a schema")
	case hasRef && !hasVersion:
		c.report(at, codeMissing, "", "the form needs a version beside its ref")
	case hasSchema && hasVersion:
		c.reportKey(join(at, "version"), codeType, "", "a version goes with ref, not with schema")
	case hasRef:
		c.name(join(at, "ref"), ref, humantask.MaxName)
		number, _ := version.(json.Number)
		if n, err := strconv.ParseUint(string(number), 10, 32); err != nil || n == 0 {
			if s, ok := version.(string); !ok || s == "" {
				c.wrong(join(at, "version"), "a whole number from 1, or a string", version)
			}
		}
	default:
		raw, err := json.Marshal(doc)
		if err == nil && !strings.Contains(string(raw), "${") {
			c.compileSchema(join(at, "schema"), doc)
		}
	}
}

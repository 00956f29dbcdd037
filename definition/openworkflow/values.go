package openworkflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/duration"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/nearest"
	"github.com/aqueduct-engine/aqueduct/problem"
)

var (
	supportedDSL = regexp.MustCompile(`^1\.0\.[0-3]$`)
	label        = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`)
	semantic     = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
	embedded     = regexp.MustCompile(`\$\{.*\}`)
	identifier   = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]*$`)
	anyText      = regexp.MustCompile(`^[^\x00-\x1f]{1,512}$`)
)

// shape says which fields an object has.
type shape struct {
	fields      []string
	required    []string
	unsupported map[string]string // fields of the language outside the profile: what they are for
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// object checks that v is an object of a shape, and returns it.
func (c *compiler) object(at string, v any, s shape) map[string]any {
	m := c.anyObject(at, v)
	if m == nil {
		return nil
	}
	for _, k := range keys(m) {
		switch what, outside := s.unsupported[k]; {
		case slices.Contains(s.fields, k):
		case outside:
			c.reportKey(join(at, k), codeUnsupported, "", "%s (%s) are outside the supported profile", what, k)
		default:
			hint := "known fields: " + strings.Join(slices.Sorted(slices.Values(s.fields)), ", ")
			if n, ok := nearest.Name(k, append(slices.Clone(s.fields), slices.Collect(maps.Keys(s.unsupported))...)); ok {
				hint = "did you mean " + n + "?"
			}
			c.reportKey(join(at, k), codeUnknown, hint, "field %s is not known here", clip(k))
		}
	}
	for _, k := range s.required {
		if _, ok := m[k]; !ok {
			c.reportKey(at, codeMissing, "", "field %s is missing", k)
		}
	}
	return m
}

func (c *compiler) anyObject(at string, v any) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		c.wrong(at, "an object", v)
	}
	return m
}

// wrong reports a value of a wrong type.
func (c *compiler) wrong(at, want string, got any) {
	hint := ""
	if _, ok := got.(json.Number); ok && strings.Contains(want, "string") {
		hint = "put it in quotes"
	}
	c.report(at, codeType, hint, "want %s, not %s", want, kindOf(got))
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	}
	return "an object"
}

// text checks that v is a string; a missing one has been reported before.
func (c *compiler) text(at string, v any) string {
	s, ok := v.(string)
	if _, there := c.at[at]; !ok && there {
		c.wrong(at, "a string", v)
	}
	return s
}

// Bounds of what is named in requests and columns, in bytes: signal.MaxKeyBytes,
// and what a wait's column has left beside name, version and numbers.
const (
	maxName    = 256
	maxTitle   = 1_000 // humantask.MaxTitle, which counts characters
	MaxPointer = 3_000 // of a task: the names of all that it is in
)

// bounded checks the length of a name.
func bounded(c *compiler, at, what, s string, most int) {
	if len(s) > most {
		c.reportKey(at, codeType, "use shorter names", "%s %s has %d bytes, more than %d", what, clip(s), len(s), most)
	}
}

func (c *compiler) matching(at string, v any, form *regexp.Regexp, what string) string {
	s := c.text(at, v)
	if s != "" && !form.MatchString(s) {
		c.report(at, codeType, "", "%s is not %s", clip(s), what)
	}
	if _, isText := v.(string); isText && s == "" {
		c.report(at, codeType, "", "want %s, not an empty string", what)
	}
	if len(s) > maxName {
		c.report(at, codeType, "", "%s has %d bytes, more than %d", clip(s), len(s), maxName)
	}
	return s
}

// oneOf checks that v is one of the words.
func (c *compiler) oneOf(at string, v any, words ...string) string {
	s, ok := v.(string)
	if !ok {
		c.wrong(at, "a string", v)
		return ""
	}
	if !slices.Contains(words, s) {
		hint := "one of " + strings.Join(words, ", ")
		if n, ok := nearest.Name(s, words); ok {
			hint = "did you mean " + n + "?"
		}
		c.report(at, codeType, hint, "%s is not a value of this field", clip(s))
	}
	return s
}

// scope is the variables that an expression may use.
type scope []string

// with returns the scope inside something that defines variables.
func (s scope) with(names ...string) scope {
	res := slices.Clone(s)
	for _, n := range names {
		if !slices.Contains(res, "$"+n) {
			res = append(res, "$"+n)
		}
	}
	return res
}

// variable takes the name of a variable that a task defines.
func (c *compiler) variable(at string, v any, fallback string) string {
	if v == nil {
		return fallback
	}
	s, ok := v.(string)
	if !ok {
		c.wrong(at, "a string", v)
		return fallback
	}
	if !identifier.MatchString(s) {
		hint := "letters, digits and _, without $"
		if strings.HasPrefix(s, "$") && identifier.MatchString(s[1:]) {
			hint = "write " + s[1:] + ", without $"
		}
		c.report(at, codeType, hint, "%s is not a name of a variable", clip(s))
		return fallback
	}
	switch s {
	case "context", "input", "output", "workflow", "task", "runtime", "secrets", "authorization":
		c.report(at, codeType, "choose another name", "$%s is a variable of the language", s)
		return fallback
	}
	return s
}

// expression takes a field that is an expression: with ${ } or bare.
func (c *compiler) expression(at string, v any, vars scope) *jq.Template {
	s, ok := v.(string)
	if !ok {
		c.wrong(at, "an expression as a string", v)
		return nil
	}
	t, err := jq.Expression(s, vars)
	if err != nil {
		c.failed(at, s, err)
		return nil
	}
	return c.placed(at, t)
}

// template takes a value whose strings may be expressions with ${ }.
func (c *compiler) template(at string, v any, vars scope) *jq.Template {
	before := len(c.findings) + c.dropped
	c.probe(at, v, vars)
	if len(c.findings)+c.dropped > before {
		return nil
	}
	t, err := jq.New(v, vars)
	if err != nil {
		c.failed(at, "", err)
		return nil
	}
	return c.placed(at, t)
}

// probe reports each expression in v that does not compile, at its own place.
func (c *compiler) probe(at string, v any, vars scope) {
	switch v := v.(type) {
	case string:
		if _, ok := jq.Wrapped(v); ok {
			if _, err := jq.Expression(v, vars); err != nil {
				c.failed(at, v, err)
			}
		} else if embedded.MatchString(v) {
			c.warn(at, warnEmbedded, `write all of it as one expression: ${ "Hello \(.name)" }`, "${ } inside of a text is not an expression: the text stays as it is")
		}
	case []any:
		for i, x := range v {
			c.probe(item(at, i), x, vars)
		}
	case map[string]any:
		for _, k := range keys(v) {
			c.probe(join(at, k), v[k], vars)
		}
	}
}

// failed reports an expression that does not compile, at the character where
// that is known.
func (c *compiler) failed(at, src string, err error) {
	pos, code, detail, hint := c.at[at], codeExpression, err.Error(), ""
	var p *problem.Error
	if errors.As(err, &p) {
		detail, hint = p.Detail, p.Hint
		if len(p.Where) == 1 && p.Where[0].Line == 1 && pos.inside > 0 && !strings.Contains(src, "\n") {
			pos.column = pos.inside + p.Where[0].Column - 1
		}
	}
	for _, v := range []string{"$secrets", "$authorization"} {
		if strings.HasPrefix(detail, "variable "+v+" ") {
			code, hint = codeUnsupported, "a secret is filled in where a call is made: in headers, query, body and authentication"
			detail = v + " cannot be used here"
			if v == "$authorization" {
				hint, detail = "the token is fetched where the call is made", v+" is outside the supported profile"
			}
		}
	}
	c.place(pos, at, code, hint, detail)
}

// filter takes {from: …} or {as: …}.
func (c *compiler) filter(at string, v any, field string, vars scope) *jq.Template {
	m := c.object(at, v, shape{fields: []string{field, "schema"}})
	f, ok := m[field]
	if !ok {
		return nil
	}
	if _, ok := f.(map[string]any); ok {
		return c.template(join(at, field), f, vars)
	}
	return c.expression(join(at, field), f, vars)
}

// timeout takes {after: …}, or where it may the name of one.
func (c *compiler) timeout(at string, v any, vars scope, byName bool) *jq.Template {
	if name, ok := v.(string); ok && byName {
		return refer(c, at, "timeouts", name, c.reusable.timeouts)
	}
	m := c.object(at, v, shape{fields: []string{"after"}, required: []string{"after"}})
	after, ok := m["after"]
	if !ok {
		return nil
	}
	return c.duration(join(at, "after"), after, vars)
}

// duration takes an ISO 8601 duration, an object of units, or an expression;
// the template gives ISO 8601.
func (c *compiler) duration(at string, v any, vars scope) *jq.Template {
	switch v := v.(type) {
	case string:
		if _, ok := jq.Wrapped(v); ok {
			return c.expression(at, v, vars)
		}
		c.iso(at, v)
		return jq.Constant(v)
	case map[string]any:
		return jq.Constant(c.units(at, v))
	}
	c.wrong(at, "a duration", v)
	return nil
}

// iso checks a duration by what the engine will do with it.
func (c *compiler) iso(at, s string) {
	if _, err := duration.After(time.Unix(0, 0), s); err != nil {
		c.report(at, codeType, "write PT30S, P1DT12H, or ${ an expression }", "%s", err)
	}
}

var unitNames = []string{"days", "hours", "minutes", "seconds", "milliseconds"}

// units writes {days: 1, hours: 2} as P1DT2H.
func (c *compiler) units(at string, v map[string]any) string {
	m := c.object(at, v, shape{fields: unitNames})
	if len(m) == 0 {
		c.report(at, codeType, "one of "+strings.Join(unitNames, ", "), "duration has no unit")
	}
	n := map[string]int64{}
	for _, u := range unitNames {
		x, ok := m[u]
		if !ok {
			continue
		}
		number, _ := x.(json.Number)
		i, err := strconv.ParseInt(string(number), 10, 64)
		if err != nil || i < 0 || i > 1e12 {
			c.report(join(at, u), codeType, "", "want a whole number from 0, not %s", quoted(x))
			continue
		}
		n[u] = i
	}
	n["seconds"] += n["milliseconds"] / 1000
	seconds := strconv.FormatInt(n["seconds"], 10)
	if ms := n["milliseconds"] % 1000; ms > 0 {
		seconds += strings.TrimRight(fmt.Sprintf(".%03d", ms), "0")
	}
	date, clock := "", ""
	if n["days"] > 0 {
		date = fmt.Sprintf("%dD", n["days"])
	}
	for _, u := range []struct{ name, designator string }{{"hours", "H"}, {"minutes", "M"}} {
		if n[u.name] > 0 {
			clock += fmt.Sprintf("%d%s", n[u.name], u.designator)
		}
	}
	if seconds != "0" || date+clock == "" {
		clock += seconds + "S"
	}
	if clock != "" {
		clock = "T" + clock
	}
	c.iso(at, "P"+date+clock)
	return "P" + date + clock
}

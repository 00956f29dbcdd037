package openworkflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/nearest"
)

// bodyParameter is the parameter that is the body of a request.
const bodyParameter = "body"

// openapi compiles a call of an OpenAPI operation to the arguments of the HTTP
// call that it is, and says whether its method is safe.
func (c *compiler) openapi(at string, v any, vars scope) (with *jq.Template, isSafe bool) {
	m := c.object(at, v, shape{
		fields:   []string{"document", "operationId", "parameters", "authentication", "output", "redirect"},
		required: []string{"document", "operationId"},
	})
	before := len(c.findings) + c.dropped
	var r *resource
	if d, ok := m["document"]; ok {
		r = c.external(join(at, "document"), d)
	}
	id := c.matching(join(at, "operationId"), m["operationId"], anyText, "the id of an operation")
	given := map[string]any{}
	if p, ok := m["parameters"]; ok {
		given = c.anyObject(join(at, "parameters"), p)
	}
	res := map[string]any{"output": "content", "redirect": false}
	late := &lateBound{c: c}
	if a, ok := m["authentication"]; ok {
		res["authentication"] = c.authentication(join(at, "authentication"), a, vars, late)
	}
	c.outcome(at, m, res)
	for _, name := range keys(given) {
		if !secretValue(given[name]) {
			c.probe(join(join(at, "parameters"), name), given[name], vars)
		}
	}
	if len(c.findings)+c.dropped > before || r == nil {
		return nil, false
	}
	o := c.operation(at, r, id)
	if o == nil {
		return nil, false
	}
	r.kept = o.keep(r.kept)
	args := at
	if len(given) > 0 {
		args = join(at, "parameters")
	}
	c.arguments(args, o, c.secretArguments(join(at, "parameters"), o, given, late), res)
	late.add(join(at, "document"), res)
	if len(c.findings)+c.dropped > before {
		return nil, false
	}
	return c.template(at, res, vars), safe(o.method)
}

// secretValue reports whether a value is an expression with a secret.
func secretValue(v any) bool {
	s, _ := v.(string)
	inner, ok := jq.Wrapped(s)
	return ok && strings.Contains(inner, "$secrets")
}

// filledLater stands for an argument that the performer fills in.
type filledLater struct{}

// secretArguments takes the secrets out of the arguments: they can stand in
// headers and in the query.
func (c *compiler) secretArguments(at string, o *operation, given map[string]any, late *lateBound) map[string]any {
	out := maps.Clone(given)
	places := map[string]string{"header": "/headers", "query": "/query"}
	for _, name := range keys(given) {
		if !secretValue(given[name]) {
			continue
		}
		i := slices.IndexFunc(o.params, func(p parameter) bool { return p.name == name && places[p.in] != "" })
		if i < 0 {
			c.report(join(at, name), codeUnsupported, "", "secrets in a path, a cookie or a body of an OpenAPI operation are outside the supported profile")
			continue
		}
		late.bind(join(at, name), join(places[o.params[i].in], name), given[name])
		out[name] = filledLater{}
	}
	return out
}

// operation finds an operation of a document.
func (c *compiler) operation(at string, r *resource, id string) *operation {
	root, _ := r.root.(map[string]any)
	d := apiDocument{uri: r.URI, root: root}
	_, err := d.version()
	if err != nil {
		c.report(join(at, "document"), codeResource, "", "document %s is not one of OpenAPI: %s", clip(r.URI), err)
		return nil
	}
	o, err := d.find(id)
	if err != nil {
		c.report(join(at, "operationId"), codeResource, "", "operation %s of %s cannot be called: %s", clip(id), clip(r.URI), err)
		return nil
	}
	if o == nil {
		hint := ""
		if n, ok := nearest.Name(id, d.ids()); ok {
			hint = "did you mean " + n + "?"
		}
		c.report(join(at, "operationId"), codeResource, hint, "document %s has no operation %s", clip(r.URI), clip(id))
		return nil
	}
	return o
}

// arguments spreads what the author gives over the places where the operation
// wants it.
func (c *compiler) arguments(at string, o *operation, given, res map[string]any) {
	for _, p := range o.params {
		if _, ok := given[p.name]; !ok && p.required {
			c.report(at, codeMissing, "", "operation %s needs the parameter %s (%s)", clip(o.id), clip(p.name), p.in)
		}
	}
	form := len(o.bodies) == 1 && o.bodies[0] == formType
	left := map[string]any{} // parameters of a form
	for _, name := range keys(given) {
		known := slices.ContainsFunc(o.params, func(p parameter) bool { return p.name == name })
		switch {
		case known || name == bodyParameter && len(o.bodies) > 0:
		case form:
			left[name] = given[name]
		default:
			c.reportKey(join(at, name), codeUnknown, c.parameterHint(o, name), "operation %s has no parameter %s", clip(o.id), clip(name))
		}
	}
	res["method"] = o.method
	res["uri"] = c.apiPath(at, o, given)
	if path, ok := pathTemplate(o.base + o.path); ok {
		res["path"] = path
	}
	if q := apiFields(o, "query", given); q != "" {
		res["query"] = q
	}
	headers := apiFields(o, "header", given)
	if cookies := apiCookies(o, given); cookies != "" {
		if headers != "" {
			headers = bracketed(headers) + " + "
		}
		headers += "{Cookie: " + cookies + "}"
	} else if headers != "" {
		headers = bracketed(headers)
	}
	body, hasBody := given[bodyParameter]
	if !hasBody && form && len(left) > 0 {
		body, hasBody = left, true
	}
	if !hasBody {
		if o.required {
			c.report(at, codeMissing, "give it as parameter body", "operation %s needs a body", clip(o.id))
		}
	} else if kind := c.apiBody(at, o, body, res); kind != "" {
		if headers != "" {
			headers += " + "
		}
		headers += `{"Content-Type": ` + literal(kind) + "}"
	}
	if headers != "" {
		res["headers"] = "${ " + headers + " }"
	}
}

// bracketed is the inside of an expression in brackets.
func bracketed(wrapped string) string {
	inner, _ := jq.Wrapped(wrapped)
	return "(" + inner + ")"
}

func (c *compiler) parameterHint(o *operation, name string) string {
	names := []string{}
	if len(o.bodies) > 0 {
		names = append(names, bodyParameter)
	}
	for _, p := range o.params {
		names = append(names, p.name)
	}
	if n, ok := nearest.Name(name, names); ok {
		return "did you mean " + n + "?"
	}
	if len(names) == 0 {
		return "it has none"
	}
	return "its parameters: " + strings.Join(names, ", ")
}

// apiBody sets the body and returns the content type that it needs, if it is
// not what JSON would get anyway.
func (c *compiler) apiBody(at string, o *operation, body any, res map[string]any) (kind string) {
	isJSON := func(t string) bool {
		media, _, err := mime.ParseMediaType(t)
		return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json") || media == "*/*")
	}
	res["body"] = body
	if i := slices.IndexFunc(o.bodies, isJSON); i >= 0 {
		if strings.Contains(o.bodies[i], "*") {
			return "application/json"
		}
		return o.bodies[i]
	}
	if slices.Contains(o.bodies, formType) {
		res["body"] = "${ " + written(body) + ` | to_entries | map(select(.value != null) | (.key | @uri) + "=" + (.value | tostring | @uri)) | join("&") }`
		return formType
	}
	if i := slices.IndexFunc(o.bodies, func(t string) bool { return strings.HasPrefix(t, "text/") }); i >= 0 {
		return o.bodies[i]
	}
	c.report(at, codeUnsupported, "call it with call: http", "bodies of %s are outside the supported profile", strings.Join(o.bodies, ", "))
	return ""
}

// segment fills a parameter into a path: a missing value, or one that is empty, a
// dot or two, would address something else, so it is an error.
const segment = `def s($n): if type == "array" then map(tostring) | join(",") else . end | if . == null or type == "object" ` +
	`then error("the path needs a value for {" + $n + "}") else tostring | ` + noSegment + ` else @uri end end;`

// apiPath is the URI of the operation: an expression when its path has
// parameters.
func (c *compiler) apiPath(at string, o *operation, given map[string]any) string {
	uri := o.base + o.path
	found := variable.FindAllStringSubmatchIndex(o.path, -1)
	if len(found) == 0 {
		return uri
	}
	var parts []string
	before, end := o.base, 0
	for _, m := range found {
		name := o.path[m[2]:m[3]]
		if !slices.ContainsFunc(o.params, func(p parameter) bool { return p.in == "path" && p.name == name }) {
			c.report(at, codeResource, "", "the path %s of the document has {%s}, which is no parameter of it", clip(o.path), name)
			continue
		}
		if _, ok := given[name]; !ok {
			continue // has been reported
		}
		parts = append(parts, literal(before+o.path[end:m[0]]), "("+written(given[name])+" | s("+literal(name)+"))")
		before, end = "", m[1]
	}
	if rest := o.path[end:]; rest != "" {
		parts = append(parts, literal(before+rest))
	}
	return "${ " + segment + " " + strings.Join(parts, " + ") + " }"
}

// apiFields is an expression that gives the parameters of one place by name; a
// parameter without a value is left out.
func apiFields(o *operation, in string, given map[string]any) string {
	var parts []string
	for _, p := range o.params {
		v, ok := given[p.name]
		if _, later := v.(filledLater); !ok || later || p.in != in {
			continue
		}
		parts = append(parts, literal(p.name)+": ("+written(v)+joined(p)+")")
	}
	if len(parts) == 0 {
		return ""
	}
	return "${ {" + strings.Join(parts, ", ") + "} | with_entries(select(.value != null)) }"
}

// joined makes one text of a list.
func joined(p parameter) string {
	if p.separate == "" {
		return ""
	}
	return fmt.Sprintf(` | if type == "array" then map(tostring) | join(%s) else . end`, literal(p.separate))
}

func apiCookies(o *operation, given map[string]any) string {
	var parts []string
	for _, p := range o.params {
		if v, ok := given[p.name]; ok && p.in == "cookie" {
			parts = append(parts, "("+written(v)+joined(p)+" | values | "+literal(p.name+"=")+" + (tostring | @uri))")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "([" + strings.Join(parts, ", ") + `] | join("; "))`
}

// written writes a value, in which strings may be expressions, as one
// expression.
func written(v any) string {
	switch v := v.(type) {
	case string:
		if inner, ok := jq.Wrapped(v); ok {
			return "(" + inner + "\n)"
		}
		return literal(v)
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = written(x)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, k := range keys(v) {
			parts = append(parts, literal(k)+": "+written(v[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	b, _ := json.Marshal(v) // null, booleans and numbers cannot fail
	return string(b)
}

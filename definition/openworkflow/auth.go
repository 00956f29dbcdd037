package openworkflow

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/nearest"
)

// secretName is what a secret can be called: a name that is also one of a file
// and, with its letters in upper case and _ for the rest, of a variable.
var secretName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$`)

// useSecrets takes the names of the secrets that the document may use.
func (c *compiler) useSecrets(at string, use map[string]any) {
	v, ok := use["secrets"]
	if !ok {
		return
	}
	at = join(at, "secrets")
	list, ok := v.([]any)
	if !ok {
		c.wrong(at, "a list of names", v)
		return
	}
	c.secrets = map[string]bool{}
	for i, x := range list {
		if s := c.matching(item(at, i), x, secretName, "a name of up to 128 letters, digits, _, - and ."); s != "" {
			c.secrets[s] = true
		}
	}
}

// secret checks that a secret is one of the document's.
func (c *compiler) secret(at, name string) {
	if c.secrets[name] {
		return
	}
	hint := "list it under use.secrets"
	if n, ok := nearest.Name(name, keys(c.secrets)); ok {
		hint = "did you mean " + n + "?"
	}
	c.report(at, codeReference, hint, "no secret is named %s", clip(name))
}

// lateBound collects the places of a command that its performer fills with
// secrets: a command is stored, and must not have them.
type lateBound struct {
	c       *compiler
	refs    []any
	policy  bool  // a whole policy is a secret
	origins []any // that the document writes out
}

// add puts what was collected into the command: its secrets, and where they may
// go. At is the endpoint. A server may quote what another call of the document has
// told it, so that every command names all secrets of the document.
func (l *lateBound) add(at string, command map[string]any) {
	if len(l.c.secrets) > 0 {
		var named []any
		for _, name := range slices.Sorted(maps.Keys(l.c.secrets)) {
			named = append(named, name)
		}
		command["named"] = named
	}
	if len(l.refs) > 0 {
		command["secrets"] = l.refs
	}
	if len(l.refs) == 0 && !l.policy {
		return
	}
	uri, _ := command["uri"].(string)
	if !l.goesTo(uri) && uri != "" {
		l.c.warn(at, warnHost, "write the host out, such as https://bank.example/{path}",
			"the host comes from data: a secret goes there only where the setting secrets.hosts names the host for it")
	}
	if len(l.origins) > 0 {
		command["origins"] = l.origins
	}
}

// writtenOut is the scheme and the authority at the beginning of a URI, and of an
// expression that begins with one.
var writtenOut = regexp.MustCompile(`^(https?://[^/?#{}"\\\s]+)(?:[/?#]|$)`)

var writtenFirst = regexp.MustCompile(`^\s*"(https?://[^/?#{}"\\\s]+)(?:[/?#]|"\s*$)`)

// goesTo adds the origin of a URI, or of an expression that makes one, to those
// that secrets may go to; false when the document does not write it out. The
// performer compares it with the origin of the final URI, so that an expression
// that is not what it looks like sends nothing.
func (l *lateBound) goesTo(uri string) bool {
	found := writtenOut.FindStringSubmatch(uri)
	if inner, ok := jq.Wrapped(uri); ok {
		for _, ours := range []string{fill, segment} {
			inner = strings.TrimPrefix(strings.TrimSpace(inner), ours)
		}
		found = writtenFirst.FindStringSubmatch(inner)
	}
	if found == nil {
		return false
	}
	scheme, authority, _ := strings.Cut(found[1], "://")
	origin := scheme + "://" + authority[strings.LastIndexByte(authority, '@')+1:]
	if !slices.Contains(l.origins, any(origin)) {
		l.origins = append(l.origins, origin)
	}
	return true
}

// secretUse is how an expression may use a secret: as it is, with text before
// and after it, or inside of a string.
var secretUse = regexp.MustCompile(`^\s*(?:("(?:[^"\\]|\\.)*")\s*\+\s*)?\$secrets((?:\.[a-zA-Z_][a-zA-Z0-9_]*|\."[^"\\]*"|\["[^"\\]*"\])+)(?:\s*\+\s*("(?:[^"\\]|\\.)*"))?\s*$`)

var secretInside = regexp.MustCompile(`^\s*"((?:[^"\\]|\\[^(])*)\\\(\s*\$secrets((?:\.[a-zA-Z_][a-zA-Z0-9_]*|\."[^"\\]*"|\["[^"\\]*"\])+)\s*\)((?:[^"\\]|\\[^(])*)"\s*$`)

var secretSegment = regexp.MustCompile(`\.([a-zA-Z_][a-zA-Z0-9_]*)|\."([^"\\]*)"|\["([^"\\]*)"\]`)

// bind replaces the secrets in v, which stands at pointer to in the command.
func (l *lateBound) bind(at, to string, v any) any {
	switch v := v.(type) {
	case string:
		inner, ok := jq.Wrapped(v)
		if !ok || !strings.Contains(inner, "$secrets") {
			return v
		}
		ref := l.c.secretRef(at, inner)
		if ref == nil {
			return nil
		}
		ref["at"] = to
		l.refs = append(l.refs, ref)
		return nil
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = l.bind(item(at, i), item(to, i), x)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range keys(v) {
			out[k] = l.bind(join(at, k), join(to, k), v[k])
		}
		return out
	}
	return v
}

// secretRef reads an expression that uses a secret.
func (c *compiler) secretRef(at, inner string) map[string]any {
	m := secretUse.FindStringSubmatch(inner)
	if m == nil {
		if m = secretInside.FindStringSubmatch(inner); m != nil {
			m[1], m[3] = `"`+m[1]+`"`, `"`+m[3]+`"`
		}
	}
	if m == nil {
		c.report(at, codeExpression, `write ${ $secrets.name.field }, or ${ "Bearer " + $secrets.name.field }`,
			"an expression with a secret can be the secret alone, with text before and after it")
		return nil
	}
	var path []any
	for _, s := range secretSegment.FindAllStringSubmatch(m[2], -1) {
		path = append(path, s[1]+s[2]+s[3])
	}
	ref := map[string]any{"name": path[0], "path": path[1:]}
	for field, text := range map[string]string{"before": m[1], "after": m[3]} {
		var s string
		if text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(text), &s); err != nil || strings.Contains(text, `\(`) {
			c.report(at, codeExpression, "", "text %s beside a secret is not a plain string", clip(text))
			return nil
		}
		if s != "" {
			ref[field] = s
		}
	}
	c.secret(at, path[0].(string))
	return ref
}

// usePolicies takes the named authentication policies, and checks those that
// nobody uses as well.
func (c *compiler) usePolicies(at string, use map[string]any) {
	v, ok := use["authentications"]
	if !ok {
		return
	}
	at = join(at, "authentications")
	c.policies = c.anyObject(at, v)
	for _, name := range keys(c.policies) {
		c.credentials(join(at, name), c.policies[name], scope{"$context", "$input", "$workflow", "$task", "$runtime"}, &lateBound{c: c})
	}
}

// authentication compiles a policy or the reference of one to the field
// authentication of a command.
func (c *compiler) authentication(at string, v any, vars scope, late *lateBound) any {
	m := c.anyObject(at, v)
	name, isRef := m["use"]
	if !isRef {
		return c.credentials(at, v, vars, late)
	}
	c.object(at, m, shape{fields: []string{"use"}})
	s, ok := name.(string)
	at = join(at, "use")
	if !ok {
		c.wrong(at, "a string: the name of an authentication policy", name)
		return nil
	}
	p, ok := c.policies[s]
	if !ok {
		hint := "define it under use.authentications"
		if n, ok := nearest.Name(s, keys(c.policies)); ok {
			hint = "did you mean " + n + "?"
		}
		c.report(at, codeReference, hint, "no authentication policy is named %s", clip(s))
		return nil
	}
	// Its findings and warnings were reported where it stands.
	findings, dropped, warnings := len(c.findings), c.dropped, len(c.warnings)
	res := c.credentials(join("/use/authentications", s), p, vars, late)
	c.findings, c.dropped, c.warnings = c.findings[:findings], dropped, c.warnings[:warnings]
	return res
}

// schemes are the ways to authenticate, with their fields.
var schemes = map[string]shape{
	"basic":  {fields: []string{"username", "password"}, required: []string{"username", "password"}},
	"digest": {fields: []string{"username", "password"}, required: []string{"username", "password"}},
	"bearer": {fields: []string{"token"}, required: []string{"token"}},
	"oauth2": {fields: append([]string{"endpoints"}, grantFields...), required: []string{"authority", "grant"}},
	"oidc":   {fields: grantFields, required: []string{"authority", "grant"}},
}

var grantFields = []string{
	"authority", "grant", "client", "request", "issuers", "scopes", "audiences", "username", "password", "subject", "actor",
}

// sensitive are the fields whose values are secrets.
var sensitive = []string{"password", "token", "secret", "assertion"}

// credentials compiles an authentication policy to {scheme: {fields}}.
func (c *compiler) credentials(at string, v any, vars scope, late *lateBound) any {
	m := c.object(at, v, shape{fields: keys(schemes)})
	if m == nil {
		return nil
	}
	if len(m) != 1 {
		c.report(at, codeMissing, "one of "+strings.Join(keys(schemes), ", "), "an authentication policy has exactly one scheme")
		return nil
	}
	name := keys(m)[0]
	form, ok := schemes[name]
	if !ok {
		return nil
	}
	p := join(at, name)
	fields := c.anyObject(p, m[name])
	if use, ok := fields["use"]; ok {
		c.object(p, fields, shape{fields: []string{"use"}})
		s := c.matching(join(p, "use"), use, secretName, "the name of a secret")
		if s != "" {
			c.secret(join(p, "use"), s)
		}
		late.policy = true
		return map[string]any{name: map[string]any{"use": s}}
	}
	c.object(p, fields, form)
	if name == "oauth2" || name == "oidc" {
		c.grant(p, fields)
		authority, _ := fields["authority"].(string)
		token, _ := asObject(fields["endpoints"])["token"].(string)
		late.goesTo(authority)
		late.goesTo(token)
	}
	c.policyTexts(p, fields)
	c.plainSecrets(p, fields)
	bound := late.bind(p, "/authentication/"+name, fields)
	c.probe(p, bound, vars)
	return map[string]any{name: bound}
}

// policyTexts checks that what stands in a policy are texts, or objects of
// texts; its lists are checked where they are read.
func (c *compiler) policyTexts(at string, m map[string]any) {
	for _, k := range keys(m) {
		p := join(at, k)
		if inner, ok := m[k].(map[string]any); ok {
			c.policyTexts(p, inner)
		} else if !slices.Contains([]string{"issuers", "scopes", "audiences"}, k) {
			c.text(p, m[k])
		}
	}
}

// grants are the supported ways to get a token.
var grants = []string{"client_credentials", "password", "refresh_token", "urn:ietf:params:oauth:grant-type:token-exchange"}

// clientForms are the supported ways in which a client shows who it is.
var clientForms = []string{"client_secret_post", "client_secret_basic", "none"}

// grant checks the form of an OAuth 2 policy.
func (c *compiler) grant(at string, m map[string]any) {
	for _, f := range []string{"authority", "username", "password"} {
		if v, ok := m[f]; ok {
			c.text(join(at, f), v)
		}
	}
	switch g := m["grant"]; {
	case g == "authorization_code":
		c.report(join(at, "grant"), codeUnsupported, "use client_credentials", "the grant authorization_code needs a person at a browser and is outside the supported profile")
	case g != nil:
		c.oneOf(join(at, "grant"), g, grants...)
	}
	if v, ok := m["client"]; ok {
		p := join(at, "client")
		client := c.object(p, v, shape{
			fields: []string{"id", "secret", "authentication"}, unsupported: map[string]string{"assertion": "signed assertions of clients"},
		})
		if form, ok := client["authentication"].(string); ok && !slices.Contains(clientForms, form) {
			if form == "client_secret_jwt" || form == "private_key_jwt" {
				c.report(join(p, "authentication"), codeUnsupported, "use client_secret_post or client_secret_basic", "signed assertions of clients (%s) are outside the supported profile", form)
			} else {
				c.oneOf(join(p, "authentication"), form, clientForms...)
			}
		}
	}
	if v, ok := m["request"]; ok {
		p := join(at, "request")
		if e, ok := c.object(p, v, shape{fields: []string{"encoding"}})["encoding"]; ok {
			c.oneOf(join(p, "encoding"), e, "application/x-www-form-urlencoded", "application/json")
		}
	}
	for _, f := range []string{"issuers", "scopes", "audiences"} {
		if v, ok := m[f]; ok {
			c.strings(join(at, f), v)
		}
	}
	for _, f := range []string{"subject", "actor"} {
		if v, ok := m[f]; ok {
			c.object(join(at, f), v, shape{fields: []string{"token", "type"}, required: []string{"token", "type"}})
		}
	}
	if v, ok := m["endpoints"]; ok {
		c.texts(join(at, "endpoints"), v)
		c.object(join(at, "endpoints"), v, shape{fields: []string{"token", "revocation", "introspection"}})
	}
}

// plainSecrets warns of secrets that would be stored: in the document, or in
// the data of its instances.
func (c *compiler) plainSecrets(at string, v any) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	for _, k := range keys(m) {
		p := join(at, k)
		s, isText := m[k].(string)
		switch inner, isExpr := jq.Wrapped(s); {
		case k == "endpoints": // {token: /path} is where one is asked for
		case !isText:
			c.plainSecrets(p, m[k])
		case !slices.Contains(sensitive, k):
		case !isExpr:
			c.warn(p, warnSecret, "write ${ $secrets.name.field }", "the %s stands in the document, where everybody can read it", k)
		case !strings.Contains(inner, "$secrets"):
			c.warn(p, warnSecret, "write ${ $secrets.name.field }", "the %s comes from the instance's data and is stored with it", k)
		}
	}
}

// strings checks a list of strings.
func (c *compiler) strings(at string, v any) {
	list, ok := v.([]any)
	if !ok {
		c.wrong(at, "a list of strings", v)
		return
	}
	for i, x := range list {
		if _, ok := x.(string); !ok {
			c.wrong(item(at, i), "a string", x)
		}
	}
}

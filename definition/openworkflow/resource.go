package openworkflow

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// Codes of what is allowed and probably not meant.
const (
	warnEmbedded = "warning.embedded-expression" // ${ } inside of a text, which stays text
	warnEvent    = "warning.uncorrelated"        // a listen whose events reach every waiting instance
	warnExport   = "warning.export-in-fork"      // a branch of a fork that exports: the last one wins
	warnEndless  = "warning.endless-retry"       // a policy that retries for ever, and at once
	warnHost     = "warning.secret-host"         // a secret for a host that data makes
	warnSecret   = "warning.plain-secret"        // a secret in the document, or in the data of an instance
)

// warn adds a warning about the value at a pointer.
func (c *compiler) warn(at, code, hint, format string, args ...any) {
	if len(c.warnings) >= MaxFindings {
		return
	}
	p := c.at[at]
	for _, w := range c.warnings {
		if w.Pointer == at && w.Code == code {
			return // a value can be looked at twice
		}
	}
	c.warnings = append(c.warnings, problem.Place{
		File: c.file, Line: p.line, Column: p.column, Pointer: at, Code: code, Detail: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// resource is a document that the definition refers to, read once.
type resource struct {
	definition.Resource
	root any    // nil when it cannot be read
	err  string // why
	kept any    // the part of it that the definition uses
}

// external reads a field {endpoint: …} and gives the document behind it; nil
// when it is not there yet or cannot be read, which has been reported.
func (c *compiler) external(at string, v any) *resource {
	m := c.object(at, v, shape{fields: []string{"name", "endpoint"}, required: []string{"endpoint"}})
	if n, ok := m["name"]; ok {
		c.text(join(at, "name"), n)
	}
	e, ok := m["endpoint"]
	if !ok {
		return nil
	}
	return c.documentAt(join(at, "endpoint"), e)
}

// documentAt takes the endpoint of a document: a literal URI, since it is
// fetched when the definition is published.
func (c *compiler) documentAt(at string, v any) *resource {
	if m, ok := v.(map[string]any); ok {
		c.object(at, m, shape{
			fields: []string{"uri"}, required: []string{"uri"},
			unsupported: map[string]string{"authentication": "documents behind authentication"},
		})
		at, v = join(at, "uri"), m["uri"]
		if v == nil {
			return nil
		}
	}
	s, ok := v.(string)
	if !ok {
		c.wrong(at, "a string: a URI", v)
		return nil
	}
	return c.fetched(at, s)
}

// fetched gives the document at a URI.
func (c *compiler) fetched(at, uri string) *resource {
	if strings.Contains(uri, "{") {
		c.report(at, codeUnsupported, "write the URI out", "a document is fetched when the definition is published: "+
			"URIs by expression or template are outside the supported profile")
		return nil
	}
	u, ok := parseAddress(uri)
	if !ok {
		c.report(at, codeType, "begin it with https:// or http://", "%s is not the URI of a document", clip(uri))
		return nil
	}
	uri = u.String()
	r := c.resources[uri]
	if r == nil {
		p := c.at[at]
		for _, n := range c.needs {
			if n.URI == uri {
				return nil
			}
		}
		c.needs = append(c.needs, definition.Need{URI: uri, Place: problem.Place{
			File: c.file, Line: p.line, Column: p.column, Pointer: at, Code: codeResource, Detail: "refers to " + clip(uri),
		}})
		return nil
	}
	if r.root == nil && r.err == "" {
		r.root, r.err = c.readResource(r.Resource)
	}
	if r.err != "" {
		c.report(at, codeResource, "", "document %s cannot be read: %s", clip(uri), r.err)
		return nil
	}
	return r
}

// readResource reads JSON, or YAML by the rules of a definition.
func (c *compiler) readResource(r definition.Resource) (root any, why string) {
	if json.Valid(r.Content) {
		root, err := jq.Decode(r.Content)
		if err != nil {
			return nil, err.Error()
		}
		return root, ""
	}
	s := readUpTo(r.URI, r.Content, definition.MaxResourceBytes)
	if len(s.findings) > 0 {
		f := s.findings[0]
		return nil, fmt.Sprintf("line %d: %s", f.Line, f.Detail)
	}
	return s.root, ""
}

// canonical is the document as it is stored: with the parts of others that it
// uses.
func (c *compiler) canonical() (json.RawMessage, error) {
	root, _ := c.root.(map[string]any)
	used := map[string]any{}
	for uri, r := range c.resources {
		if r.kept != nil {
			used[uri] = map[string]any{"digest": r.Digest, "content": r.kept}
		}
	}
	if len(used) == 0 {
		return jq.Encode(c.root, 2*MaxSourceBytes)
	}
	all := map[string]any{definition.ResourcesField: used}
	for k, v := range root {
		all[k] = v
	}
	return jq.Encode(all, 2*MaxSourceBytes+definition.MaxResourceBytes)
}

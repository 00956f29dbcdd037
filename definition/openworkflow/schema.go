package openworkflow

import (
	"errors"
	"strings"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/schema"
)

// schemaOf compiles the field schema of an input, an output or an export.
func (c *compiler) schemaOf(at string, filter any) *schema.Schema {
	m, _ := filter.(map[string]any)
	v, ok := m["schema"]
	if !ok {
		return nil
	}
	at = join(at, "schema")
	s := c.object(at, v, shape{fields: []string{"format", "document", "resource"}})
	if s == nil {
		return nil
	}
	if f, ok := s["format"]; ok {
		if text := c.text(join(at, "format"), f); text != "" && text != "json" && !strings.HasPrefix(text, "json:") {
			c.report(join(at, "format"), codeUnsupported, "write a JSON Schema", "schemas of the format %s are outside the supported profile", clip(text))
			return nil
		}
	}
	inline, isInline := s["document"]
	outside, isOutside := s["resource"]
	switch {
	case isInline == isOutside:
		c.report(at, codeMissing, "", "a schema has either a document or a resource")
		return nil
	case isInline:
		return c.compileSchema(join(at, "document"), inline)
	}
	r := c.external(join(at, "resource"), outside)
	if r == nil {
		return nil
	}
	r.kept = r.root
	return c.compileSchema(join(at, "resource"), r.root)
}

// compileSchema compiles a schema that stands at a pointer, or behind it.
func (c *compiler) compileSchema(at string, doc any) *schema.Schema {
	raw, err := jq.Encode(doc, definition.MaxResourceBytes)
	if err != nil {
		c.report(at, codeSchema, "", "schema cannot be written: %s", err)
		return nil
	}
	s, err := schema.Compile(raw)
	if err != nil {
		detail := err.Error()
		var p *problem.Error
		if errors.As(err, &p) {
			detail = p.Detail
		}
		c.report(at, codeSchema, "", "%s", detail)
	}
	return s
}

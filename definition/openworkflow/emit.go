package openworkflow

import (
	"regexp"
	"time"

	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/program"
)

// attributeName is how CloudEvents names attributes.
var attributeName = regexp.MustCompile(`^[a-z0-9]{1,20}$`)

// emit compiles the event that a task publishes.
func (c *compiler) emit(at string, m map[string]any, n *program.Node, vars scope, _ []string) {
	at = join(at, "emit")
	e := c.object(at, m["emit"], shape{fields: []string{"event"}, required: []string{"event"}})
	v, ok := e["event"]
	if !ok {
		return
	}
	at = join(at, "event")
	event := c.object(at, v, shape{fields: []string{"with"}, required: []string{"with"}})
	v, ok = event["with"]
	if !ok {
		return
	}
	at = join(at, "with")
	with := c.anyObject(at, v)
	if with == nil {
		return
	}
	if _, ok := with["type"]; !ok {
		c.reportKey(at, codeMissing, "", "field type is missing")
	}
	for _, name := range keys(with) {
		c.attribute(join(at, name), name, with[name])
	}
	n.Emit = c.template(at, with, vars)
}

// attribute checks one attribute of an event, unless it is an expression:
// then the task checks what it gives.
func (c *compiler) attribute(at, name string, v any) {
	if !attributeName.MatchString(name) {
		c.reportKey(at, codeType, "put it into data, or use up to 20 lower-case letters and digits", "%s is not a name of an attribute of a CloudEvent", clip(name))
	}
	s, isText := v.(string)
	if _, ok := jq.Wrapped(s); ok {
		return
	}
	switch name {
	case "data":
		return
	case "specversion":
		if v != "1.0" {
			c.report(at, codeType, "leave it out: it is '1.0'", "%s is not the version of CloudEvents that is emitted", quoted(v))
		}
		return
	case "id", "source", "type", "subject", "time", "datacontenttype", "dataschema":
		if !isText {
			c.wrong(at, "a string", v)
			return
		}
		if s == "" {
			c.report(at, codeType, "leave it out, or give it a value", "attribute %s is empty", name)
		}
	default:
		switch v.(type) {
		case nil, []any, map[string]any:
			c.wrong(at, "a string, a number or a boolean", v)
		}
		return
	}
	if name == "time" && s != "" {
		if _, err := time.Parse(time.RFC3339, s); err != nil {
			c.report(at, codeType, "write 2026-01-31T12:00:00Z, or leave it out", "%s is not a moment in RFC 3339", clip(s))
		}
	}
}

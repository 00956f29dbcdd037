package openworkflow

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/nearest"
)

const codeAttribute = "definition.attribute" // a search attribute that cannot be one

// searchAttributes takes from metadata what instances are found by.
func searchAttributes(c *compiler, at string, metadata map[string]any) []attribute.Declared {
	v, ok := metadata["searchAttributes"]
	if !ok {
		return nil
	}
	at = join(at, "searchAttributes")
	all := c.anyObject(at, v)
	if len(all) > attribute.Max {
		c.report(at, codeAttribute, "", "%d search attributes are declared; a definition has at most %d", len(all), attribute.Max)
	}
	var list []attribute.Declared
	for _, name := range keys(all) {
		p := join(at, name)
		if why := attribute.Named(name); why != "" {
			c.reportKey(p, codeAttribute, "choose another name", "%s cannot be the name of a search attribute: %s", clip(name), why)
		}
		m := c.object(p, all[name], shape{fields: []string{"path", "type"}, required: []string{"path", "type"}})
		if m == nil {
			continue
		}
		d := attribute.Declared{Name: name, Kind: attribute.Kind(c.text(join(p, "type"), m["type"])), At: p}
		if _, isText := m["type"].(string); isText && !slices.Contains(attribute.Kinds, d.Kind) {
			hint := "write text, decimal, boolean or time"
			if near, ok := nearest.Name(string(d.Kind), []string{"text", "decimal", "boolean", "time"}); ok {
				hint = "did you mean " + near + "?"
			}
			c.report(join(p, "type"), codeAttribute, hint, "%s is no type of a search attribute", clip(string(d.Kind)))
		}
		if text, isText := m["path"].(string); isText {
			d.Root, d.Path, ok = pathOf(text)
			if !ok {
				c.report(join(p, "path"), codeAttribute, "write .order.amount, $context.customer or $workflow.input.id",
					"%s is no path of members of the data, of $context or of $workflow.input", clip(text))
			}
		} else {
			c.text(join(p, "path"), m["path"])
		}
		list = append(list, d)
	}
	return list
}

// member is a step of a path: .name or ."any name".
var member = regexp.MustCompile(`^\.(?:[A-Za-z_][A-Za-z0-9_]*|"(?:[^"\\]|\\.)*")`)

// pathOf reads a path, with or without ${ } around it.
func pathOf(text string) (root attribute.Root, path []string, ok bool) {
	rest := strings.TrimSpace(text)
	if inner, opened := strings.CutPrefix(rest, "${"); opened {
		if rest, ok = strings.CutSuffix(inner, "}"); !ok {
			return root, nil, false
		}
		rest = strings.TrimSpace(rest)
	}
	for _, r := range []attribute.Root{attribute.Context, attribute.Input} {
		if after, is := strings.CutPrefix(rest, string(r)); is {
			root, rest = r, after
		}
	}
	for rest != "" {
		step := member.FindString(rest)
		if step == "" {
			return root, nil, false
		}
		rest = rest[len(step):]
		name := step[1:]
		if name[0] == '"' {
			raw, err := jsontext.AppendUnquote(nil, name)
			if err != nil {
				return root, nil, false
			}
			name = string(raw)
		}
		path = append(path, name)
	}
	return root, path, len(path) > 0
}

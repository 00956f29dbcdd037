package openworkflow

import (
	"regexp"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/nearest"
	"github.com/aqueduct-engine/aqueduct/program"
)

// cataloged is how a function of a catalog is called.
var cataloged = regexp.MustCompile(`^([a-zA-Z0-9][a-zA-Z0-9._-]*):(\d+\.\d+\.\d+[0-9A-Za-z.+-]*)@([a-zA-Z0-9][a-zA-Z0-9-]*)$`)

// defaultCatalog is the catalog of a node: our functions, and those that its
// programs register as name:version.
const defaultCatalog = "default"

// ours are the functions of the default catalog that are part of the language.
var ours = map[string]string{"human-task:1.0.0": callPerson, "for-each:1.0.0": callEach, "acknowledged:1.0.0": callAck}

// useCatalogs takes the catalogs of the document.
func (c *compiler) useCatalogs(at string, use map[string]any) {
	v, ok := use["catalogs"]
	if !ok {
		return
	}
	at = join(at, "catalogs")
	c.catalogs = map[string]string{}
	m := c.anyObject(at, v)
	for _, name := range keys(m) {
		p := join(at, name)
		if name == defaultCatalog {
			c.reportKey(p, codeType, "choose another name", "catalog %s is that of the node", name)
		}
		e := c.object(p, m[name], shape{fields: []string{"endpoint"}, required: []string{"endpoint"}})["endpoint"]
		if o, ok := e.(map[string]any); ok {
			c.object(join(p, "endpoint"), o, shape{
				fields: []string{"uri"}, required: []string{"uri"}, unsupported: map[string]string{"authentication": "catalogs behind authentication"},
			})
			e = o["uri"]
		}
		s, ok := e.(string)
		if _, isURI := parseAddress(s); !ok || !isURI {
			c.report(join(p, "endpoint"), codeType, "begin it with https:// or http://", "%s is not the address of a catalog", quoted(e))
			continue
		}
		c.catalogs[name] = rawAddress(strings.TrimSuffix(s, "/"))
	}
}

var githubTree = regexp.MustCompile(`^https://github\.com/([^/]+/[^/]+)/tree/(.+)$`)

// rawAddress is where the files of a catalog on GitHub are, whose page is what
// people know.
func rawAddress(s string) string {
	return githubTree.ReplaceAllString(s, "https://raw.githubusercontent.com/$1/$2")
}

// function finds what a call calls when that is a task: a function under use
// that is more than a call, one of a catalog, or one at a URI. Ok is false when
// it is something else; a nil task is not there yet, or has been reported.
func (c *compiler) function(at string, m map[string]any) (name string, task any, ok bool) {
	name, isText := m["call"].(string)
	if !isText {
		return "", nil, false
	}
	at = join(at, "call")
	uri := ""
	switch found := cataloged.FindStringSubmatch(name); {
	case found != nil && found[3] == defaultCatalog:
		return "", nil, false
	case found != nil && c.catalogs[found[3]] == "":
		hint := "define it under use.catalogs"
		if n, ok := nearest.Name(found[3], append(keys(c.catalogs), defaultCatalog)); ok {
			hint = "did you mean " + n + "?"
		}
		c.report(at, codeReference, hint, "no catalog is named %s", clip(found[3]))
		return name, nil, true
	case found != nil:
		uri = c.catalogs[found[3]] + "/functions/" + found[1] + "/" + found[2] + "/function.yaml"
	case scheme.MatchString(name) && strings.Contains(name, "://"):
		uri = name
	default:
		f, isTask := c.functions[name].(map[string]any)
		return name, f, isTask && !plainCall(f)
	}
	r := c.fetched(at, uri)
	if r == nil {
		return name, nil, true
	}
	r.kept = r.root
	return name, r.root, true
}

// plainCall reports whether a function is nothing but a call with arguments.
func plainCall(f map[string]any) bool {
	for _, k := range keys(f) {
		if k != "call" && k != "with" {
			return false
		}
	}
	return true
}

// expand compiles the call of a function that is a task: the task in a list of
// its own, which gets the arguments as its input.
func (c *compiler) expand(at, name string, task any, m map[string]any, n *program.Node, vars scope) {
	n.Kind = program.KindDo
	n.Body = &program.Node{Pointer: join(at, "function"), Kind: program.KindList}
	if slices.Contains(c.expanding, name) {
		c.report(join(at, "call"), codeType, "", "function %s calls itself, directly or by way of another", clip(name))
		return
	}
	if with, ok := m["with"]; ok {
		if n.Input != nil {
			c.reportKey(join(at, "input"), codeUnsupported, "put the fields into with", "input.from together with arguments of a named function is outside the supported profile")
		}
		if c.anyObject(join(at, "with"), with) != nil {
			n.Input = c.template(join(at, "with"), with, vars)
		}
	}
	if task == nil {
		return
	}
	c.expanding = append(c.expanding, name)
	defer func() { c.expanding = c.expanding[:len(c.expanding)-1] }()
	label := name[strings.LastIndexByte(name, '/')+1:]
	before := len(c.findings)
	p := join(item(join(at, "function"), 0), label)
	n.Body.List = []*program.Node{c.task(p, label, task, functionScope, []string{label})}
	if c.functions[name] != nil {
		c.findings = c.findings[:before] // they were reported where it stands
		return
	}
	c.foldFindings(before, join(at, "call"), "function "+clip(name))
}

// functionScope is what a function sees.
var functionScope = scope{"$context", "$input", "$workflow", "$task", "$runtime"}

// foldFindings replaces the findings from an index on, which stand in a text
// that is not the document, by one at the place that brought them in.
func (c *compiler) foldFindings(from int, at, what string) {
	if len(c.findings) <= from {
		return
	}
	f := c.findings[from]
	c.findings = c.findings[:from]
	c.report(at, f.Code, f.Hint, "%s: %s: %s", what, f.Pointer, f.Detail)
}

// evaluate checks how expressions are to be evaluated: there is one way.
func (c *compiler) evaluate(at string, v any) {
	m := c.object(at, v, shape{fields: []string{"language", "mode"}})
	if l, ok := m["language"]; ok {
		if s := c.text(join(at, "language"), l); s != "" && s != "jq" {
			c.report(join(at, "language"), codeUnsupported, "write them in jq", "expressions in %s are outside the supported profile", clip(s))
		}
	}
	if mode, ok := m["mode"]; ok && c.oneOf(join(at, "mode"), mode, "strict", "loose") == "loose" {
		c.report(join(at, "mode"), codeUnsupported, "write each expression as ${ … }", "expressions in loose mode are outside the supported profile")
	}
}

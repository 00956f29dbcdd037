// Package openworkflow reads definitions in the Open Workflow DSL 1.0, and
// lifecycles whose hooks are tasks of that language, and compiles them to
// programs of the engine.
//
// It accepts a profile of the language (docs/reference/language.md) and refuses
// everything else by name, so that nothing in a published document is silently
// ignored. All findings are reported at once, each with its place in the
// source, a stable code and, where there is one, the name that was probably
// meant.
//
// YAML is only a way to write JSON here: anchors, aliases, tags, merge keys and
// several documents are refused, and only JSON's own literals are more than
// text. The canonical document is the JSON with its keys in order.
//
// The package is pure: it opens no files and fetches nothing. Documents that a
// definition refers to are given to it; what is used of them becomes part of
// the canonical document, so that a stored definition is complete.
package openworkflow

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/program"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Kind is the name of this parser's kind of document.
const Kind = "openworkflow"

// Codes of single findings. The problem as a whole is definition.invalid.
const (
	codeYAML        = "definition.yaml"              // the text is not a document of the allowed form
	codeType        = "definition.type"              // a value of the wrong type or form
	codeUnknown     = "definition.unknown-field"     // a field that the language does not have
	codeMissing     = "definition.missing-field"     // a field that must be there
	codeUnsupported = "definition.unsupported"       // a feature of the language outside the profile
	codeExpression  = "definition.expression"        // an expression that does not compile
	codeTarget      = "definition.unknown-target"    // a flow directive to no task of the list
	codeReference   = "definition.unknown-reference" // a name that use does not define
	codeDuplicate   = "definition.duplicate-task"    // two tasks of one name in a list
	codeResource    = "definition.resource"          // a document that the definition refers to does not fit
	codeSchema      = "definition.schema"            // a JSON Schema that is none
	codeCyclic      = "definition.cyclic"            // a sub-workflow that leads back to its own definition
)

var _ definition.Parser = Parse

// Parse reads and compiles one document; file is only quoted in findings. Of a
// document that refers to others it says which it needs, until they are given.
func Parse(file string, text []byte, given ...definition.Resource) (definition.Parsed, error) {
	s := read(file, text)
	if len(s.findings) > 0 {
		return definition.Parsed{}, s.problem()
	}
	c := &compiler{source: s, resources: map[string]*resource{}}
	for _, r := range given {
		c.resources[r.URI] = &resource{Resource: r}
	}
	compile := c.workflow
	switch top, _ := s.root.(map[string]any); {
	case top[definition.KindPolicy] != nil && top["document"] == nil:
		return policyCompiler{compiler: c}.parse()
	case top[lifecycle] != nil:
		compile = c.lifecycle
	}
	made := compile()
	if len(s.findings) > 0 {
		return definition.Parsed{}, s.problem()
	}
	var unknown []problem.Place
	if policy := policyAmong(given); policy != nil && c.machine != nil {
		var err error
		if unknown, err = lay(c, c.machine, policy); err != nil {
			return definition.Parsed{}, err
		}
	}
	document, err := c.canonical()
	if err != nil {
		return definition.Parsed{}, err
	}
	if len(c.needs) > 0 {
		return definition.Parsed{Ref: made.ID, Title: c.title, Document: document, Needs: c.needs, Warnings: c.warnings,
			Functions: c.registered, Known: c.callable(), Steps: c.steps}, nil
	}
	made.ID.Digest = digest(document)
	made.Info = program.Info{Document: s.root}
	p, err := program.New(made)
	if err != nil {
		return definition.Parsed{}, problem.Wrap(err, problem.Internal, "definition.invalid", "definition %s@%s", made.ID.Name, made.ID.Version)
	}
	title := c.title
	if title == "" {
		title = made.ID.Name
	}
	return definition.Parsed{Definition: p, Ref: made.ID, Title: title, Document: document, Warnings: c.warnings, Unknown: unknown,
		Functions: c.registered, Known: c.callable(), Steps: c.steps}, nil
}

func digest(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:])
}

// problem makes one problem of all findings.
func (s *source) problem() error {
	n := len(s.findings) + s.dropped
	e := problem.New(problem.Invalid, "definition.invalid", "%s has %d findings", name(s.file), n)
	if n == 1 {
		e.Detail = fmt.Sprintf("%s has 1 finding", name(s.file))
	}
	e.Where = s.findings
	if s.dropped > 0 {
		e.Hint = fmt.Sprintf("%d more findings are not shown", s.dropped)
	}
	return e
}

func name(file string) string {
	if file == "" {
		return "definition"
	}
	return file
}

// compiler makes a program of a source.
type compiler struct {
	*source
	id         snapshot.Definition
	title      string
	functions  map[string]any
	resources  map[string]*resource // by URI
	needs      []definition.Need
	warnings   []problem.Place
	registered map[string]problem.Place // functions that a program has to register, by name
	steps      []definition.Called
	policies   map[string]any    // use.authentications
	catalogs   map[string]string // use.catalogs: their addresses
	extensions []extension
	extending  bool            // inside of an extension, which no extension is for
	expanding  []string        // functions whose calls are being expanded
	secrets    map[string]bool // use.secrets
	reusable   reusable
	patience   time.Duration // how long a command may wait for a place; 0 = the document does not say
	searchable []attribute.Declared
	machine    *machine // of a lifecycle
	catches    int      // how many catches are around what is being compiled
	hooking    bool     // inside of a hook, which ends no instance
}

func (c *compiler) workflow() (p program.Program) {
	root := c.object("", c.root, shape{
		fields:   []string{"document", "input", "output", "schedule", "timeout", "use", "do", "evaluate"},
		required: []string{"document", "do"},
	})
	if root == nil {
		return p
	}
	p.ID = c.document("/document", root["document"])
	c.id, p.Attributes = p.ID, c.searchable
	if v, ok := root["evaluate"]; ok {
		c.evaluate("/evaluate", v)
	}
	if v, ok := root["use"]; ok {
		c.use("/use", v)
	}
	vars := []string{"$context", "$input", "$workflow", "$runtime"}
	if v, ok := root["input"]; ok {
		p.Input = c.filter("/input", v, "from", vars)
		p.Schemas.Input = c.schemaOf("/input", v)
	}
	if v, ok := root["output"]; ok {
		p.Output = c.filter("/output", v, "as", vars)
		p.Schemas.Output = c.schemaOf("/output", v)
	}
	if v, ok := root["timeout"]; ok {
		p.Timeout = c.timeout("/timeout", v, vars, true)
	}
	if v, ok := root["schedule"]; ok {
		p.Schedule = c.schedule("/schedule", v)
	}
	if v, ok := root["do"]; ok {
		p.Root = c.list("/do", v, scope{"$context", "$input", "$workflow", "$task", "$runtime"})
		p.Root.GiveUp = c.patience
	}
	return p
}

func (c *compiler) document(at string, v any) (id snapshot.Definition) {
	doc := c.object(at, v, shape{
		fields:   []string{"dsl", "namespace", "name", "version", "title", "summary", "tags", "metadata"},
		required: []string{"dsl", "namespace", "name", "version"},
	})
	if doc == nil {
		return id
	}
	dsl := c.text(join(at, "dsl"), doc["dsl"])
	if _, isText := doc["dsl"].(string); isText && !supportedDSL.MatchString(dsl) {
		c.report(join(at, "dsl"), codeUnsupported, "write dsl: '1.0.3'", "version %s of the language", clip(dsl))
	}
	namespace := c.matching(join(at, "namespace"), doc["namespace"], label, "a name of up to 63 letters, digits and hyphens")
	name := c.matching(join(at, "name"), doc["name"], label, "a name of up to 63 letters, digits and hyphens")
	id.Name = namespace + "/" + name
	id.Version = c.matching(join(at, "version"), doc["version"], semantic, "a semantic version such as '1.0.0'")
	if v, ok := doc["title"]; ok {
		c.title = c.text(join(at, "title"), v)
		bounded(c, join(at, "title"), "the title", c.title, maxTitle)
	}
	if v, ok := doc["summary"]; ok {
		c.text(join(at, "summary"), v)
	}
	for _, f := range []string{"tags", "metadata"} {
		if v, ok := doc[f]; ok {
			m := c.anyObject(join(at, f), v)
			if f == "metadata" {
				c.patience = c.giveUp(join(at, f), m)
				c.searchable = searchAttributes(c, join(at, f), m)
			}
		}
	}
	return id
}

// use takes the named functions; what they are is checked where they are used,
// and here for those that nobody uses.
func (c *compiler) use(at string, v any) {
	use := c.object(at, v, shape{
		fields: []string{"authentications", "catalogs", "errors", "extensions", "functions", "retries", "secrets", "timeouts"},
	})
	c.reuse(at, use)
	c.useCatalogs(at, use)
	defer c.useExtensions(at, use) // they may call functions
	c.useSecrets(at, use)
	c.usePolicies(at, use)
	functions, ok := use["functions"]
	if !ok {
		return
	}
	at = join(at, "functions")
	c.functions = c.anyObject(at, functions)
	for _, name := range keys(c.functions) {
		p := join(at, name)
		if reserved[name] || name == callHTTP || name == callAPI || name == callPerson || name == callEach || name == callCompensate {
			c.reportKey(p, codeType, "choose another name", "function %s would hide what the language calls so", clip(name))
			continue
		}
		f := c.anyObject(p, c.functions[name])
		if f == nil {
			continue
		}
		if !plainCall(f) {
			c.expanding = []string{name}
			c.task(p, name, f, functionScope, []string{name})
			c.expanding = nil
			continue
		}
		c.object(p, f, shape{fields: []string{"call", "with"}, required: []string{"call"}})
		if c.cyclic(name) {
			c.reportKey(p, codeType, "", "function %s calls itself, directly or by way of another", clip(name))
			continue
		}
		// Compiled once without a use, so that its findings are reported once
		// and not for each use.
		c.call(p, f, scope{"$context", "$input", "$workflow", "$task", "$runtime"}, []string{name}, false)
	}
}

// cyclic reports whether a function leads back to itself.
func (c *compiler) cyclic(name string) bool {
	at := name
	for range c.functions {
		f, _ := c.functions[at].(map[string]any)
		at, _ = f["call"].(string)
		if c.functions[at] == nil {
			return false
		}
		if at == name {
			return true
		}
	}
	return false
}

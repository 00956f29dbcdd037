package openworkflow

import (
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/program"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// What a policy names and a lifecycle does not have.
const (
	codePolicyState = "policy.unknown-state"
	codePolicyEvent = "policy.unknown-event"
)

// policyCompiler reads policies.
type policyCompiler struct{ *compiler }

// overlay is a policy while it is compiled: what lies over a lifecycle, by the names of
// its states and events.
type overlay struct {
	id     snapshot.Definition
	states map[string]*program.State
	at     map[string]string // pointers of the states
}

// parse reads a document that lies over the versions of a lifecycle, by itself:
// which of its names they know is found when it is laid over them.
func (c policyCompiler) parse() (definition.Parsed, error) {
	o := c.policyDocument()
	if len(c.findings) > 0 {
		return definition.Parsed{}, c.problem()
	}
	document, err := c.canonical()
	if err != nil {
		return definition.Parsed{}, err
	}
	p := definition.Parsed{
		Ref: o.id, Title: c.title, Document: document, Needs: c.needs, Warnings: c.warnings,
		Functions: c.registered, Known: c.callable(), Steps: c.steps,
	}
	if len(c.needs) == 0 {
		p.Ref.Digest = digest(document)
	}
	return p, nil
}

func (c policyCompiler) policyDocument() *overlay {
	root := c.object("", c.root, shape{
		fields:   []string{"policy", "environment", "definition", "version", "title", "summary", "states"},
		required: []string{"policy", "environment", "definition", "version", "states"},
	})
	if v := c.text("/policy", root["policy"]); v != "" && !lifecycleVersion.MatchString(v) {
		c.report("/policy", codeUnsupported, "write policy: '1.0'", "version %s of policies", clip(v))
	}
	o := &overlay{states: map[string]*program.State{}, at: map[string]string{}}
	o.id = snapshot.Definition{
		Name: engine.PolicyPrefix + c.matching("/environment", root["environment"], label, "a name of up to 63 letters, digits and hyphens") + "/" +
			c.matching("/definition", root["definition"], label, "a name of up to 63 letters, digits and hyphens"),
		Version: c.matching("/version", root["version"], semantic, "a semantic version such as '1.0.0'"),
	}
	c.id, c.title = o.id, c.text("/title", root["title"])
	bounded(c.compiler, "/title", "the title", c.title, maxTitle)
	c.text("/summary", root["summary"])
	if v, ok := root["states"]; ok {
		all := c.anyObject("/states", v)
		if all != nil && len(all) == 0 {
			c.report("/states", codeMissing, "name a state of the lifecycle", "the policy says nothing")
		}
		for _, name := range keys(all) {
			at := join("/states", name)
			o.states[name], o.at[name] = c.policyState(at, all[name]), at
		}
	}
	return o
}

// policyState takes what a policy says of a state.
func (c policyCompiler) policyState(at string, v any) *program.State {
	s := &program.State{}
	fields := c.object(at, v, shape{fields: []string{"timeout", "timeoutEvent"}})
	if fields != nil && len(fields) == 0 {
		c.report(at, codeMissing, "", "the policy says nothing of the state")
	}
	if v, ok := fields["timeout"]; ok {
		s.Timeout = c.duration(join(at, "timeout"), v, guardScope)
	}
	if v, ok := fields["timeoutEvent"]; ok {
		s.Expire = c.matching(join(at, "timeoutEvent"), v, stateName, nameForm)
	}
	return s
}

// lay has the policy among the documents that were given lie over a lifecycle. What it
// names and the lifecycle does not have is left out, and told.
func lay(c *compiler, m *machine, policy *definition.Resource) (unknown []problem.Place, err error) {
	s := read(policy.URI, policy.Content)
	over := policyCompiler{&compiler{source: s, resources: c.resources}}
	var o *overlay
	if len(s.findings) == 0 {
		o = over.policyDocument()
	}
	if len(s.findings) > 0 {
		return nil, s.problem()
	}
	for _, name := range keys(o.states) {
		n, at := m.states[name], o.at[name]
		if n == nil {
			over.warn(at, codePolicyState, one(name, m.order), "the lifecycle has no state %s", clip(name))
			continue
		}
		over.layState(n, at, o.states[name])
	}
	return over.warnings, nil
}

func (c policyCompiler) layState(n *program.Node, at string, over *program.State) {
	if n.State.Final && over.Timeout != nil {
		c.warn(join(at, "timeout"), codePolicyState, "", "state %s is final, is not left, and has no timeout", clip(n.Name))
		return
	}
	if over.Timeout != nil {
		n.State.Timeout = over.Timeout
	}
	switch e := over.Expire; {
	case e == "":
	case !slices.ContainsFunc(n.State.On, func(tr *program.Transition) bool { return tr.Event == e }):
		var names []string
		for _, tr := range n.State.On {
			names = append(names, tr.Event)
		}
		c.warn(join(at, "timeoutEvent"), codePolicyEvent, one(e, names), "no transition out of state %s takes an event %s", clip(n.Name), clip(e))
	case n.State.Timeout == nil:
		c.warn(join(at, "timeoutEvent"), codePolicyState, "say with timeout how long an instance may stay", "state %s has no timeout", clip(n.Name))
	default:
		n.State.Expire = e
	}
}

// policyAmong is the policy among the documents that a lifecycle is given; nil = none.
func policyAmong(given []definition.Resource) *definition.Resource {
	for i := range given {
		if strings.HasPrefix(given[i].URI, engine.PolicyPrefix) {
			return &given[i]
		}
	}
	return nil
}

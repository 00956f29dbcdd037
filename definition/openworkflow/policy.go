package openworkflow

import (
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/definition"
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
type policyCompiler struct {
	*compiler
	of snapshot.Definition // what the policy is laid over
}

// overlay is a policy while it is compiled: what lies over a lifecycle.
type overlay struct {
	id     snapshot.Definition
	states map[string]*program.Node // by name; those of a lifecycle, with what the policy adds to them
	said   []string                 // names of states that the policy says something of by themselves
	events map[string][]string      // pointers where an event is named, by its name
	roles  map[string][]string      // that events are for, by their names
	named  map[string][]string      // pointers where a state is named, by its name
}

// parse reads a document that lies over the versions of a lifecycle, by itself:
// which of its names they know is found when it is laid over them.
func (c policyCompiler) parse() (definition.Parsed, error) {
	o := c.policyDocument(nil)
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

// policyDocument compiles a policy for a lifecycle with states, in their order; those that
// only the policy names are there, too.
func (c policyCompiler) policyDocument(order []string) *overlay {
	root := c.object("", c.root, shape{
		fields:   []string{"policy", "environment", "definition", "version", "title", "summary", "use", "states", "events", "consumers", "deliveries"},
		required: []string{"policy", "environment", "definition", "version"},
	})
	if v := c.text("/policy", root["policy"]); v != "" && !lifecycleVersion.MatchString(v) {
		c.report("/policy", codeUnsupported, "write policy: '1.0'", "version %s of policies", clip(v))
	}
	o := &overlay{states: map[string]*program.Node{}, events: map[string][]string{}, named: map[string][]string{}, roles: map[string][]string{}}
	o.id = snapshot.Definition{
		Name: definition.PolicyPrefix + c.matching("/environment", root["environment"], label, "a name of up to 63 letters, digits and hyphens") + "/" +
			c.matching("/definition", root["definition"], label, "a name of up to 63 letters, digits and hyphens"),
		Version: c.matching("/version", root["version"], semantic, "a semantic version such as '1.0.0'"),
	}
	if c.id = c.of; c.of.Name == "" {
		c.id = o.id
	}
	c.title = c.text("/title", root["title"])
	bounded(c.compiler, "/title", "the title", c.title, maxTitle)
	c.text("/summary", root["summary"])
	if v, ok := root["use"]; ok {
		c.use("/use", v)
	}
	if _, ok := root["deliveries"]; root["states"] == nil && root["events"] == nil && !ok {
		c.report("", codeMissing, "give it states, events or deliveries", "the policy says nothing")
	}
	all := map[string]any{}
	if v, ok := root["states"]; ok {
		if all = c.anyObject("/states", v); all != nil && len(all) == 0 {
			c.report("/states", codeMissing, "name a state of the lifecycle", "the policy says nothing")
		}
	}
	o.said = keys(all)
	c.names(o, root["deliveries"])
	c.policyEvents(o, root["events"])
	m := &machine{states: o.states, order: slices.Clone(order), events: map[string]*program.Event{}}
	for _, name := range slices.Concat(order, o.said, keys(o.named)) {
		if o.states[name] == nil {
			o.states[name] = &program.Node{Pointer: join("/states", name), Name: name, State: &program.State{}}
		}
		if !slices.Contains(m.order, name) {
			m.order = append(m.order, name)
		}
	}
	for name := range o.events {
		m.events[name] = &program.Event{Name: name}
	}
	c.deliveries(m, "/deliveries", c.consumers(root["consumers"]), root["deliveries"])
	for _, name := range o.said {
		at := join("/states", name)
		o.named[name] = append(o.named[name], at)
		c.policyState(o, at, all[name], o.states[name].State)
	}
	return o
}

// policyEvents takes what a policy says of events: the roles that they are for.
func (c policyCompiler) policyEvents(o *overlay, v any) {
	if v == nil {
		return
	}
	all := c.anyObject("/events", v)
	if all != nil && len(all) == 0 {
		c.report("/events", codeMissing, "name an event of the lifecycle", "the policy says nothing")
	}
	for _, name := range keys(all) {
		at := join("/events", name)
		o.events[name] = append(o.events[name], at)
		fields := c.object(at, all[name], shape{fields: []string{"roles"}, required: []string{"roles"}})
		if v, ok := fields["roles"]; ok {
			o.roles[name] = roles(c.compiler, join(at, "roles"), v)
		}
	}
}

// names notes which states and events deliveries name; whether they are names is for
// deliveries to say.
func (c policyCompiler) names(o *overlay, v any) {
	list, _ := v.([]any)
	for i, x := range list {
		fields, _ := x.(map[string]any)
		at := item("/deliveries", i)
		if name, ok := fields["event"].(string); ok {
			o.events[name] = append(o.events[name], join(at, "event"))
		}
		switch states := fields["states"].(type) {
		case string:
			if states != everywhere {
				o.named[states] = append(o.named[states], join(at, "states"))
			}
		case []any:
			for j, x := range states {
				if name, ok := x.(string); ok {
					o.named[name] = append(o.named[name], item(join(at, "states"), j))
				}
			}
		}
	}
}

// policyState takes what a policy says of a state. Its hooks come behind what tells the
// consumers.
func (c policyCompiler) policyState(o *overlay, at string, v any, s *program.State) {
	fields := c.object(at, v, shape{fields: []string{"timeout", "timeoutEvent", "onEnter", "onExit", "retry", "notices"}})
	if fields != nil && len(fields) == 0 {
		c.report(at, codeMissing, "", "the policy says nothing of the state")
	}
	if v, ok := fields["timeout"]; ok {
		s.Timeout = c.duration(join(at, "timeout"), v, guardScope)
	}
	if v, ok := fields["timeoutEvent"]; ok {
		s.Expire = c.matching(join(at, "timeoutEvent"), v, stateName, nameForm)
	}
	if v, ok := fields["notices"]; ok {
		s.Notices = notices(c.compiler, join(at, "notices"), v)
	}
	if v, ok := fields["retry"]; ok {
		s.Retry = hookRetry(c.compiler, join(at, "retry"), v)
	}
	if v, ok := fields["onEnter"]; ok {
		hooks := c.hooks(join(at, "onEnter"), v)
		if s.Enter != nil {
			hooks.List = append(s.Enter.List, hooks.List...)
		}
		s.Enter = hooks
	}
	if v, ok := fields["onExit"]; ok {
		s.Exit = c.hooks(join(at, "onExit"), v)
	}
}

// hooks compiles hooks of a policy. They can neither be found by events nor be
// compensated, which is done by the definition that an instance runs.
func (c policyCompiler) hooks(at string, v any) *program.Node {
	list := hooks(c.compiler, at, v)
	each(list, func(n *program.Node) {
		switch {
		case n.Kind == program.KindListen:
			c.report(n.Pointer, codeUnsupported, "listen in a hook of the lifecycle", "listening in a hook of a policy")
		case n.Compensate != nil || n.Kind == program.KindCompensate:
			c.report(n.Pointer, codeUnsupported, "compensate in a hook of the lifecycle", "compensation in a hook of a policy")
		}
	})
	return list
}

// each visits a task and those inside it.
func each(n *program.Node, visit func(*program.Node)) {
	if n == nil {
		return
	}
	visit(n)
	for _, child := range n.List {
		each(child, visit)
	}
	each(n.Body, visit)
	if n.Catch != nil {
		each(n.Catch.Body, visit)
	}
}

// lay has the policy among the documents that were given lie over a lifecycle. What it
// names and the lifecycle does not have is left out, and told.
func lay(c *compiler, m *machine, policy *definition.Resource) (unknown []problem.Place, err error) {
	s := read(policy.URI, policy.Content)
	over := policyCompiler{&compiler{source: s, resources: c.resources}, c.id}
	var o *overlay
	if len(s.findings) == 0 {
		o = over.policyDocument(m.order)
	}
	if len(s.findings) > 0 {
		return nil, s.problem()
	}
	over.warnings = nil // they were told when it was published
	for _, name := range keys(o.events) {
		for _, at := range o.events[name] {
			if m.events[name] == nil {
				over.warn(at, codePolicyEvent, one(name, keys(m.events)), "the lifecycle has no event %s", clip(name))
			}
		}
	}
	for name, only := range o.roles {
		if e := m.events[name]; e != nil {
			e.Roles = only
		}
	}
	if first := o.states[m.order[0]]; waiting(m.states[m.order[0]].State.Enter) == nil {
		warnFirst(over.compiler, first, "/deliveries")
	}
	for _, name := range keys(o.states) {
		n := m.states[name]
		if n != nil {
			over.layState(n, join("/states", name), o.states[name].State, o.id.Version)
			continue
		}
		for _, at := range o.named[name] {
			over.warn(at, codePolicyState, one(name, m.order), "the lifecycle has no state %s", clip(name))
		}
	}
	return over.warnings, nil
}

func (c policyCompiler) layState(n *program.Node, at string, over *program.State, version string) {
	if n.State.Final && (over.Timeout != nil || over.Exit != nil) {
		c.warn(at, codePolicyState, "", "state %s is final, is not left, and has neither timeout nor onExit", clip(n.Name))
		over.Timeout, over.Exit = nil, nil
	}
	if over.Timeout != nil {
		n.State.Timeout = over.Timeout
	}
	for notice, leaves := range over.Notices {
		if n.State.Notices == nil {
			n.State.Notices = map[string]bool{}
		}
		n.State.Notices[notice] = leaves
	}
	if over.Retry != nil {
		n.State.Retry = over.Retry
	}
	n.State.Enter = behind(n.State.Enter, join(n.Pointer, "onEnter"), over.Enter, version)
	n.State.Exit = behind(n.State.Exit, join(n.Pointer, "onExit"), over.Exit, version)
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

// behind puts the hooks of a policy behind those of the lifecycle, as one task whose
// pointers name the version: an instance that is among them goes on in the same ones.
func behind(list *program.Node, at string, hooks *program.Node, version string) *program.Node {
	if hooks == nil {
		return list
	}
	if list == nil {
		list = &program.Node{Pointer: at, Kind: program.KindList}
	}
	each(hooks, func(n *program.Node) {
		n.Pointer = "/policy/" + version + n.Pointer
		if n.Of != "" {
			n.Of = "/policy/" + version + n.Of
		}
	})
	task := &program.Node{Pointer: hooks.Pointer + "/policy", Name: "policy " + version, Kind: program.KindDo, Policy: version, Body: hooks}
	list.List = append(list.List, task)
	return list
}

// policyAmong is the policy among the documents that a lifecycle is given; nil = none.
func policyAmong(given []definition.Resource) *definition.Resource {
	for i := range given {
		if strings.HasPrefix(given[i].URI, definition.PolicyPrefix) {
			return &given[i]
		}
	}
	return nil
}

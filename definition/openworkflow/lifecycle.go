package openworkflow

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/nearest"
	"github.com/aqueduct-engine/aqueduct/program"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// lifecycle is the kind of a document that is a state machine: states, events
// and transitions (D1), whose hooks are tasks of the Open Workflow DSL.
const lifecycle = "lifecycle"

// Parsers are the parsers of a catalogue, by kind of document.
func Parsers() map[string]definition.Parser {
	return map[string]definition.Parser{Kind: Parse, lifecycle: Parse, definition.KindPolicy: Parse}
}

// Warnings about a lifecycle.
const (
	warnUnreachable = "warning.unreachable-state" // no transition leads there
	warnDeadEnd     = "warning.dead-end"          // no transition leads out of a state that is not final
	warnShadowed    = "warning.shadowed"          // a transition that an earlier one always precedes
	warnFirstEvent  = "warning.first-event"       // an instance takes no event in the turn that starts it
)

// Categories of a state.
const (
	initial      = "initial"
	intermediate = "intermediate"
	final        = "final"
)

var (
	lifecycleVersion = regexp.MustCompile(`^1\.0$`)
	stateName        = regexp.MustCompile(`^[\pL\pN]([\pL\pN _.-]{0,126}[\pL\pN])?$`)
	guardScope       = scope{"$context", "$workflow", "$runtime", "$" + program.VarEvent, "$" + program.VarTransition}
	hookScope        = guardScope.with("input", "task")
)

const nameForm = "a name of up to 128 letters, digits, spaces, and _ . -"

// machine is a lifecycle while it is compiled.
type machine struct {
	states map[string]*program.Node // by name
	order  []string                 // their names, that of the initial one first
	events map[string]*program.Event
}

// lifecycle compiles a document that is a state machine.
func (c *compiler) lifecycle() (p program.Program) {
	root := c.object("", c.root, shape{
		fields: []string{
			"lifecycle", "environment", "definition", "version", "title", "summary", "metadata", "use", "input", "output",
			"states", "events", "transitions", "consumers", "policies",
		},
		required: []string{"lifecycle", "environment", "definition", "version", "states", "events", "transitions"},
	})
	if v := c.text("/lifecycle", root["lifecycle"]); v != "" && !lifecycleVersion.MatchString(v) {
		c.report("/lifecycle", codeUnsupported, "write lifecycle: '1.0'", "version %s of lifecycles", clip(v))
	}
	p.ID = snapshot.Definition{
		Name: c.matching("/environment", root["environment"], label, "a name of up to 63 letters, digits and hyphens") + "/" +
			c.matching("/definition", root["definition"], label, "a name of up to 63 letters, digits and hyphens"),
		Version: c.matching("/version", root["version"], semantic, "a semantic version such as '1.0.0'"),
	}
	c.id, c.title = p.ID, c.text("/title", root["title"])
	bounded(c, "/title", "the title", c.title, maxTitle)
	c.text("/summary", root["summary"])
	if v, ok := root["metadata"]; ok {
		p.Attributes = searchAttributes(c, "/metadata", c.anyObject("/metadata", v))
	}
	if v, ok := root["use"]; ok {
		c.use("/use", v)
	}
	if v, ok := root["input"]; ok {
		p.Input = c.filter("/input", v, "from", scope{"$context", "$input", "$workflow", "$runtime"})
		p.Schemas.Input = c.schemaOf("/input", v)
	}
	if v, ok := root["output"]; ok {
		p.Output = c.filter("/output", v, "as", scope{"$context", "$input", "$workflow", "$runtime"})
		p.Schemas.Output = c.schemaOf("/output", v)
	}
	m := &machine{states: map[string]*program.Node{}, events: map[string]*program.Event{}}
	c.machineEvents(m, root["events"])
	c.states(m, root["states"])
	c.transitions(m, root["transitions"])
	c.deliveries(m, "/policies", c.consumers(root["consumers"]), root["policies"])
	c.connected(m)
	c.machine = m
	p.Policy = &engine.Policy{Name: definition.PolicyPrefix + p.ID.Name}
	p.Machine = &program.Machine{Events: m.events}
	p.Root = &program.Node{Pointer: "/states", Kind: program.KindList}
	for _, name := range m.order {
		p.Root.List = append(p.Root.List, m.states[name])
	}
	return p
}

// machineEvents takes what applications may trigger. No name and no code may
// mean two events.
func (c *compiler) machineEvents(m *machine, v any) {
	if v == nil {
		return
	}
	named := map[string]string{} // name or code to the pointer of its event
	all := c.anyObject("/events", v)
	for _, name := range keys(all) {
		at := join("/events", name)
		if !stateName.MatchString(name) {
			c.reportKey(at, codeType, "", "%s is not %s", clip(name), nameForm)
		}
		fields := c.object(at, all[name], shape{fields: []string{"code", "title", "schema", "roles"}})
		c.text(join(at, "title"), fields["title"])
		e := &program.Event{Name: name, Schema: c.schemaOf(at, all[name])}
		if v, ok := fields["roles"]; ok {
			e.Roles = roles(c, join(at, "roles"), v)
		}
		if v, ok := fields["code"]; ok {
			e.Code = c.code(join(at, "code"), v)
		}
		for _, n := range []string{name, e.Code} {
			if first, twice := named[n]; twice && first != at {
				c.report(at, codeType, "the other one is "+first, "%s means two events", clip(n))
			}
			if n != "" {
				named[n] = at
			}
		}
		m.events[name] = e
	}
}

// code takes the other name of an event: a number or a text.
func (c *compiler) code(at string, v any) string {
	switch v := v.(type) {
	case json.Number:
		if _, err := strconv.Atoi(string(v)); err == nil {
			return string(v)
		}
	case string:
		if stateName.MatchString(v) {
			return v
		}
	}
	c.report(at, codeType, "", "%s is neither a whole number nor %s", quoted(v), nameForm)
	return ""
}

func (c *compiler) states(m *machine, v any) {
	if v == nil {
		return
	}
	all := c.anyObject("/states", v)
	var first []string
	for _, name := range keys(all) {
		at := join("/states", name)
		if !stateName.MatchString(name) {
			c.reportKey(at, codeType, "", "%s is not %s", clip(name), nameForm)
		}
		n := &program.Node{Pointer: at, Name: name, Kind: program.KindState, State: &program.State{}}
		m.states[name] = n
		if c.state(m, at, all[name], n.State) == initial {
			first = append(first, name)
		}
		m.order = append(m.order, name)
	}
	switch {
	case len(first) == 1:
		i := slices.Index(m.order, first[0])
		m.order = slices.Concat(first, m.order[:i], m.order[i+1:])
	case all != nil && len(first) == 0:
		c.report("/states", codeMissing, "give one state category: initial", "no state is the initial one")
	case len(first) > 1:
		c.report(join("/states", first[1]), codeType, "", "two states are the initial one: %s", strings.Join(first, " and "))
	}
}

// state compiles one state, and returns its category.
func (c *compiler) state(m *machine, at string, v any, s *program.State) string {
	fields := c.object(at, v, shape{fields: []string{"category", "title", "timeout", "timeoutEvent", "onEnter", "onExit", "retry", "notices"}})
	category := intermediate
	if v, ok := fields["category"]; ok {
		category = c.oneOf(join(at, "category"), v, initial, intermediate, final)
	}
	s.Final = category == final
	c.text(join(at, "title"), fields["title"])
	if v, ok := fields["timeout"]; ok {
		s.Timeout = c.duration(join(at, "timeout"), v, guardScope)
	}
	if v, ok := fields["timeoutEvent"]; ok {
		p := join(at, "timeoutEvent")
		s.Expire = c.known(p, v, "event", keys(m.events))
		if s.Timeout == nil {
			c.reportKey(p, codeMissing, "say with timeout how long an instance may stay", "a timeoutEvent needs a timeout")
		}
	}
	if v, ok := fields["onEnter"]; ok {
		s.Enter = hooks(c, join(at, "onEnter"), v)
	}
	if v, ok := fields["onExit"]; ok {
		s.Exit = hooks(c, join(at, "onExit"), v)
	}
	if v, ok := fields["notices"]; ok {
		s.Notices = notices(c, join(at, "notices"), v)
	}
	if v, ok := fields["retry"]; ok {
		s.Retry = hookRetry(c, join(at, "retry"), v)
	}
	for _, f := range []string{"timeout", "onExit"} {
		if _, ok := fields[f]; ok && s.Final {
			c.reportKey(join(at, f), codeType, "", "a final state is not left, and has no %s", f)
		}
	}
	return category
}

// hooks compiles the tasks between two states.
func hooks(c *compiler, at string, v any) *program.Node {
	c.hooking = true
	defer func() { c.hooking = false }()
	return c.list(at, v, hookScope)
}

// known takes a name that the document must define.
func (c *compiler) known(at string, v any, what string, names []string) string {
	s, ok := v.(string)
	switch {
	case !ok:
		c.wrong(at, "a string: the name of a "+what, v)
		return ""
	case slices.Contains(names, s):
		return s
	}
	c.report(at, codeReference, one(s, names), "no %s is named %s", what, clip(s))
	return ""
}

// one is the hint for a name that is none of those that are there.
func one(name string, names []string) string {
	if n, ok := nearest.Name(name, names); ok {
		return "did you mean " + n + "?"
	}
	return "one of " + strings.Join(names, ", ")
}

func (c *compiler) transitions(m *machine, v any) {
	if v == nil {
		return
	}
	list, ok := v.([]any)
	if !ok {
		c.wrong("/transitions", "a list of transitions", v)
		return
	}
	for i, x := range list {
		c.transition(m, item("/transitions", i), x)
	}
}

func (c *compiler) transition(m *machine, at string, v any) {
	fields := c.object(at, v, shape{
		fields: []string{"from", "event", "to", "when", "set", "hooks"}, required: []string{"from", "event", "to"},
	})
	if fields == nil {
		return
	}
	tr := &program.Transition{Pointer: at}
	if v, ok := fields["event"]; ok {
		tr.Event = c.known(join(at, "event"), v, "event", keys(m.events))
	}
	if v, ok := fields["to"]; ok {
		tr.To = c.known(join(at, "to"), v, "state", keys(m.states))
	}
	if v, ok := fields["when"]; ok {
		tr.When = c.expression(join(at, "when"), v, guardScope)
	}
	switch v := fields["set"].(type) {
	case string:
		tr.Set = c.expression(join(at, "set"), v, guardScope)
	case map[string]any:
		tr.Set = c.template(join(at, "set"), v, guardScope)
	default:
		if _, ok := fields["set"]; ok {
			c.wrong(join(at, "set"), "an object or an expression", v)
		}
	}
	if v, ok := fields["hooks"]; ok {
		tr.Hooks = hooks(c, join(at, "hooks"), v)
	}
	if v, ok := fields["from"]; ok {
		for _, name := range c.from(m, join(at, "from"), v) {
			s := m.states[name].State
			for _, other := range s.On {
				if other.Event == tr.Event && other.When == nil && tr.Event != "" {
					c.warn(at, warnShadowed, "give "+other.Pointer+" a guard, or put it behind this one",
						"in state %s this transition is never taken: %s takes %s always", clip(name), other.Pointer, clip(tr.Event))
				}
			}
			s.On = append(s.On, tr)
		}
	}
}

// everywhere stands for all states; as the source of a transition, for those
// that are not final.
const everywhere = "*"

// from takes the states that a transition leads out of.
func (c *compiler) from(m *machine, at string, v any) []string {
	var names []string
	for i, name := range c.several(at, v, "state", m.order) {
		switch {
		case name == "":
		case !m.states[name].State.Final:
			names = append(names, name)
		case v != everywhere:
			p := at
			if _, isList := v.([]any); isList {
				p = item(at, i)
			}
			c.report(p, codeType, "", "state %s is final, and no transition leads out of it", clip(name))
		}
	}
	return names
}

// connected warns of states that are not part of the whole, and refuses a
// timeout whose event would always be refused.
func (c *compiler) connected(m *machine) {
	if len(c.findings) > 0 || len(m.order) == 0 {
		return
	}
	reached := map[string]bool{m.order[0]: true}
	for queue := m.order[:1:1]; len(queue) > 0; queue = queue[1:] {
		for _, tr := range m.states[queue[0]].State.On {
			if !reached[tr.To] {
				reached[tr.To] = true
				queue = append(queue, tr.To)
			}
		}
	}
	warnFirst(c, m.states[m.order[0]], "/policies")
	for _, name := range m.order {
		n := m.states[name]
		if !reached[name] {
			c.warn(n.Pointer, warnUnreachable, "", "no transition leads from the initial state to %s", clip(name))
		}
		if !n.State.Final && len(n.State.On) == 0 {
			c.warn(n.Pointer, warnDeadEnd, "give it category: final if it is the end", "no transition leads out of state %s", clip(name))
		}
		if e := n.State.Expire; e != "" && !slices.ContainsFunc(n.State.On, func(tr *program.Transition) bool { return tr.Event == e }) {
			c.report(join(n.Pointer, "timeoutEvent"), codeReference, "add the transition, or leave the event out",
				"no transition out of state %s takes the event %s", clip(name), clip(e))
		}
	}
}

// warnFirst warns of what an initial state waits for: its hooks, and consumers that are
// told by the rules at a pointer.
func warnFirst(c *compiler, n *program.Node, rules string) {
	at := waiting(n.State.Enter)
	if at == nil {
		return
	}
	pointer := at.Pointer
	if i, told := strings.CutPrefix(pointer, n.Pointer+"/policies/"); told {
		i, _, _ = strings.Cut(i, "/")
		pointer = join(join(rules, i), "await")
	}
	c.warn(pointer, warnFirstEvent, "start the instance first, or leave it to the hooks and rules of the states behind it",
		"the initial state waits here: the first event triggered for a reference is refused with lifecycle.first-event")
}

// waiting is the first task of a list that needs something from outside before
// the list ends; nil = there is none.
func waiting(n *program.Node) *program.Node {
	if n == nil {
		return nil
	}
	switch n.Kind {
	case program.KindWait, program.KindListen, program.KindEach, program.KindPerson:
		return n
	case program.KindCall:
		if told := n.If != nil && strings.Contains(n.Pointer, "/policies/"); !n.Call.Detached && !told { // of an event, and none has led here
			return n
		}
	case program.KindRun:
		if n.Run.Await {
			return n
		}
	}
	for _, child := range n.List {
		if w := waiting(child); w != nil {
			return w
		}
	}
	return waiting(n.Body)
}

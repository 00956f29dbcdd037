package program

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/nearest"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/schema"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	jsonv2 "github.com/go-json-experiment/json"
)

// Machine makes a program of a lifecycle: the tasks of its root list are
// states, and an instance rests in one until an application triggers an event
// that a transition takes (D2). An event that nothing takes is refused, and
// never kept for later.
type Machine struct {
	Events map[string]*Event // by name
}

// Event is what an application may trigger. It knows events, never states.
type Event struct {
	Name   string
	Code   string         // another name, such as a number; "" = none
	Schema *schema.Schema // of the data; nil = anything
	Roles  []string       // of which who triggers it has one; none = whoever may trigger events
}

// State is where an instance of a lifecycle rests.
type State struct {
	Enter   *Node           // KindList: hooks that run before it rests; nil = none
	Exit    *Node           // KindList: hooks that run when it leaves; nil = none
	On      []*Transition   // of one event the first whose guard holds is taken
	Timeout *jq.Template    // an ISO 8601 duration after which its stay is stale (D6); nil = it may stay for ever
	Expire  string          // name of the event that the system triggers then; "" = none
	Notices map[string]bool // whether one leaves as a CloudEvent; what is not there does
	Retry   *RetryPolicy    // of hooks that fail on entering and leaving; AttemptFor is none of its; nil = none
	Final   bool            // the instance is complete when it is there
}

// Transition leads from the state that has it to another. While its hooks wait
// for something, the instance takes no event.
type Transition struct {
	Pointer string
	Event   string       // its name
	When    *jq.Template // guard; nil = always
	Set     *jq.Template // the instance's data from then on; nil = they stay
	Hooks   *Node        // KindList: between the exit of one state and the entry of the other; nil = none
	To      string       // name of a state
}

// hooks are the lists of hooks that run in a state.
func (s *State) hooks() []*Node {
	lists := []*Node{s.Enter, s.Exit}
	for _, tr := range s.On {
		lists = append(lists, tr.Hooks)
	}
	return lists
}

// Phases of a state whose hooks run. Without one, the instance rests there.
const (
	phaseEnter = "enter"
	phaseExit  = "exit"
	phaseHooks = "hooks" // of the transition
)

// entryState is the stream's record that an instance left a state for another,
// with {from, to, event}.
const entryState = "StateChanged"

// entryStale is the stream's notice that an instance has stayed in a state for
// longer than its timeout, and typeStale the type of the event that says so.
const (
	entryStale = "StateStale"
	typeStale  = "io.aqueduct.lifecycle.state-stale.v1"
)

// Variables of a lifecycle, without $. They exist from the moment an event is
// taken until the instance rests again.
const (
	VarEvent      = "event"      // {name, code, data, actor}, and ackRequired where it is false
	VarTransition = "transition" // {from, to, event, occurredAt}
)

// betweenStates is between the names of two states, for an instance that goes from one
// to the other.
const betweenStates = "->"

// actorSystem is who triggers the event of a timeout.
const actorSystem = "system"

// trigger is an event as somebody has sent it.
type trigger struct {
	event *Event
	data  json.RawMessage
	actor string
	once  bool // who is told of it has but to take it, and acknowledges nothing
}

// taken is what becomes of an event that a transition takes.
type taken struct {
	transition *Transition
	data       value
	vars       map[string]json.RawMessage
}

// HasStates reports whether the program is a lifecycle.
func (p *policed) HasStates() bool { return p.Policy != nil }

// Admit refuses an event that no transition takes. Problems:
// lifecycle.unknown-event, event.forbidden, lifecycle.invalid-payload, lifecycle.refused.
func (p *Program) Admit(t *engine.Turn, w snapshot.Wait, event engine.Result) error {
	r := (&work{p: p, t: t}).branch(w.Branch)
	if r == nil || p.node(w.Pointer) == nil {
		return fmt.Errorf("program: %s: nothing rests at %s", t.Snap.InstanceID, w.Pointer)
	}
	_, err := r.states.take(p.node(w.Pointer), event.Output, event.Actor, true)
	return err
}

// Takes lists the events that an instance of a lifecycle takes now, guards
// aside; none between two states, and for other definitions.
func (p *Program) Takes(s *snapshot.Snapshot) []string {
	w, ok := s.Resting()
	if n := p.node(w.Pointer); ok && n != nil {
		return n.State.events()
	}
	return nil
}

// take finds the transition that takes an event in the state n, with nothing
// changed. Who has sent the event is asked where that is still to be done.
func (r states) take(n *Node, payload json.RawMessage, actor string, asked bool) (*taken, error) {
	var body struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
		Acks *bool           `json:"ackRequired"`
	}
	if err := jsonv2.Unmarshal(payload, &body); err != nil {
		return nil, problem.Wrap(err, problem.Invalid, "signal.invalid", "the event is not {type, data, ackRequired}")
	}
	event, err := r.p.Machine.find(body.Type)
	if err != nil {
		return nil, err
	}
	if asked {
		if err := r.allowed(n, event, actor); err != nil {
			return nil, err
		}
	}
	if body.Data = orNull(body.Data); event.Schema != nil {
		if places := event.Schema.Check(body.Data); len(places) > 0 {
			return nil, problem.New(problem.Invalid, "lifecycle.invalid-payload", "the data of event %s do not fit its schema: %s", event.Name, schema.Summary(places))
		}
	}
	refuse := func(why string) (*taken, error) {
		return nil, problem.New(problem.Conflict, "lifecycle.refused", "instance %s in state %s does not take %s: %s", r.t.Snap.InstanceID, n.Name, event.Name, why)
	}
	why := ""
	for _, tr := range n.State.On {
		if tr.Event != event.Name {
			continue
		}
		c, err := r.consider(n, tr, trigger{event, body.Data, actor, body.Acks != nil && !*body.Acks})
		if err != nil {
			return refuse(err.Error()) // as good as a guard that does not hold
		}
		if c != nil {
			return c, nil
		}
		why = "no guard holds"
	}
	if why == "" {
		why = "it takes " + orNone(n.State.events())
	}
	return refuse(why)
}

// consider evaluates the guard of a transition and the data it makes; nil when
// the guard does not hold.
func (r states) consider(n *Node, tr *Transition, by trigger) (*taken, error) {
	event := map[string]any{"name": by.event.Name, "code": orNil(by.event.Code), "data": by.data, "actor": orNil(by.actor)}
	if by.once {
		event["ackRequired"] = false
	}
	c := &taken{transition: tr, data: r.data, vars: make(map[string]json.RawMessage, 2)}
	var err error
	for name, v := range map[string]any{
		VarEvent:      event,
		VarTransition: map[string]string{"from": n.Name, "to": tr.To, "event": by.event.Name, "occurredAt": r.t.In.Now.Format(time.RFC3339Nano)},
	} {
		if c.vars[name], err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	in := scope{node: n, input: r.data, vars: c.vars}
	if tr.When != nil {
		v, err := r.evals.evalAny(tr.When, &in)
		if err != nil {
			return nil, fmt.Errorf("the guard at %s/when: %w", tr.Pointer, err)
		}
		if !jq.Truthy(v) {
			return nil, nil
		}
	}
	if tr.Set != nil {
		if c.data, err = r.evals.eval(tr.Set, &in); err != nil {
			return nil, fmt.Errorf("the data at %s/set: %w", tr.Pointer, err)
		}
	}
	return c, nil
}

// orNil is how an expression sees a text that is not there.
func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// find returns the event with a name or a code.
func (m *Machine) find(name string) (*Event, error) {
	if e := m.Events[name]; e != nil {
		return e, nil
	}
	var names []string
	for _, e := range m.Events {
		if e.Code != "" && e.Code == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	slices.Sort(names)
	hint := "its events are " + orNone(names)
	if near, ok := nearest.Name(name, names); ok {
		hint = "did you mean " + near + "?"
	}
	return nil, problem.New(problem.Invalid, "lifecycle.unknown-event", "the lifecycle has no event %q", name).WithHint("%s", hint)
}

// events are the names of those that a state takes.
func (s *State) events() []string {
	var names []string
	for _, tr := range s.On {
		if !slices.Contains(names, tr.Event) {
			names = append(names, tr.Event)
		}
	}
	return names
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// arrive begins the state on top.
func (r states) arrive(n *Node) (rests bool, err error) {
	if s := &r.t.Snap.State; s.Name == "" {
		s.Name = n.Name // the initial one
	}
	if n.State.Enter != nil {
		return false, r.hook(phaseEnter, n.State.Enter)
	}
	return r.stay(n)
}

// hook runs a list of hooks in the state on top. What they make of the data is
// not the instance's: a hook keeps something by its export.
func (r states) hook(phase string, list *Node) error {
	f := r.top()
	raw, err := r.data.Raw(snapshot.MaxBytes)
	if err != nil {
		return err
	}
	f.Phase, f.Input = phase, raw
	r.push(snapshot.Frame{Pointer: list.Pointer})
	return nil
}

// hooked goes on in the state on top after its hooks.
func (r states) hooked(n *Node) (rests bool, err error) {
	f := r.top()
	r.data = rawValue(f.Input)
	phase := f.Phase
	f.Phase, f.Input = "", nil
	switch phase {
	case phaseEnter:
		return r.stay(n)
	case phaseExit:
		if hooks := n.State.On[f.Next].Hooks; hooks != nil {
			return false, r.hook(phaseHooks, hooks)
		}
	}
	return false, r.move(n, n.State.On[f.Next])
}

// stay has the instance rest in the state on top, or complete.
func (r states) stay(n *Node) (rests bool, err error) {
	f := r.top()
	f.StartedAt = r.t.In.Now
	var until time.Time
	if n.State.Timeout != nil {
		if until, err = r.waits.after(n.State.Timeout, &scope{node: n, input: r.data, since: f.StartedAt}); err != nil {
			return false, err
		}
	}
	r.b.Frames[0].Vars, r.t.Snap.State.Name, r.t.Snap.Definition.Policy = nil, n.Name, ""
	if n.State.Final {
		return false, r.complete(n, r.data, Flow{Directive: FlowEnd})
	}
	r.t.Await(snapshot.Wait{Kind: snapshot.WaitState, Branch: r.b.ID, Pointer: n.Pointer})
	if !until.IsZero() {
		r.t.Await(snapshot.Wait{Kind: snapshot.WaitTimer, Branch: r.b.ID, Pointer: n.Pointer, Until: until})
	}
	return true, nil
}

// triggered leaves the state on top by the transition that takes an event.
func (r states) triggered(n *Node, payload json.RawMessage, actor string) (rests bool, err error) {
	c, err := r.take(n, payload, actor, false) // Admit has asked
	if err != nil {
		return false, err
	}
	return false, r.depart(n, c)
}

// depart begins to leave the state on top.
func (r states) depart(n *Node, c *taken) error {
	r.t.Withdraw(engine.TaskCancelled, func(w snapshot.Wait) bool { return w.Branch == r.b.ID && w.Pointer == n.Pointer })
	f := r.top()
	f.Next = slices.Index(n.State.On, c.transition)
	r.data, r.b.Frames[0].Vars = c.data, c.vars
	r.t.Snap.State.Name = n.Name + betweenStates + c.transition.To
	switch {
	case n.State.Exit != nil:
		return r.hook(phaseExit, n.State.Exit)
	case c.transition.Hooks != nil:
		return r.hook(phaseHooks, c.transition.Hooks)
	}
	return r.move(n, c.transition)
}

// move goes on to the state of a transition.
func (r states) move(n *Node, tr *Transition) error {
	r.t.Append(engine.Entry{Kind: engine.KindEvent, Dir: engine.Out, Type: entryState, Data: r.b.Frames[0].Vars[VarTransition], Meta: engine.Meta{Pointer: n.Pointer, Policy: r.p.Policy.Version}})
	return r.complete(n, r.data, Flow{Directive: FlowTo, Target: tr.To})
}

// stale notes that the stay in the state on top is over its timeout, and
// triggers the event for it through the same table as any other. When that is
// refused, the instance rests on.
func (r states) stale(n *Node) (rests bool, err error) {
	f := r.top()
	notice := map[string]any{
		"instanceId": r.t.Snap.InstanceID, "reference": r.t.Snap.Business.Key, "state": n.Name, "since": f.StartedAt.Format(time.RFC3339Nano), "event": n.State.Expire,
	}
	data, err := json.Marshal(notice)
	if err != nil {
		return false, err
	}
	r.t.Append(engine.Entry{Kind: engine.KindEvent, Dir: engine.Out, Type: entryStale, Data: data, Meta: engine.Meta{Pointer: n.Pointer, Actor: actorSystem, Policy: r.p.Policy.Version}})
	if n.State.tells(entryStale) {
		if err := r.tellStale(n, notice); err != nil {
			return false, err
		}
	}
	if n.State.Expire == "" {
		return true, nil
	}
	payload, err := json.Marshal(map[string]any{"type": n.State.Expire})
	if err != nil {
		return false, err
	}
	c, err := r.take(n, payload, actorSystem, false)
	if err != nil {
		return true, nil // the notice says what it would have been
	}
	return false, r.depart(n, c)
}

// tellStale has the notice of a stay that is over its timeout leave.
func (r states) tellStale(n *Node, notice map[string]any) error {
	event, key, err := r.calls.cloudEvent(map[string]any{"type": typeStale, "subject": r.t.Snap.InstanceID, "data": notice}, r.at(n, 0))
	if err != nil {
		return err
	}
	whole := anyValue(event)
	raw, err := whole.Raw(engine.MaxEventBytes)
	if err == nil {
		r.t.Emit(raw, n.Pointer, key)
	}
	return err
}

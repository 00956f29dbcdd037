package workflow

import (
	"encoding/json"
	"reflect"
)

// Decider is a workflow as decide and evolve: what happens are events of the type E,
// mostly an interface of the author, which are recorded in the instance's stream in
// the commit that they happen in, and the state is what they make of it.
type Decider[S, E any] struct {
	// Decide says what has happened and what is to be done. The type of Input.Value is
	// that which Takes says of Input.Step.
	Decide func(s S, in Input[any]) ([]E, Do)
	// Evolve makes the next state.
	Evolve func(s S, event E) S
	// Takes are the inputs: [Begins], and [Takes] and [TakesFailure] for each step.
	Takes []Taken
}

// Taken is an input that a [Decider] decides about.
type Taken struct {
	step   *step // nil = the start
	failed bool
	typed  func(json.RawMessage) (any, error)
	paths  []Path
}

// Begins is the start of an instance, with an input of the type I.
func Begins[I any](paths ...Path) Taken { return Taken{typed: valueOf[I], paths: paths} }

// Takes are the results of a step.
func Takes[O any](s Step[O], paths ...Path) Taken {
	d := s.described()
	return Taken{step: &d, typed: valueOf[O], paths: paths}
}

// TakesFailure is the [Failure] of a step. Without it the workflow fails; see
// [OnFailure].
func TakesFailure[O any](s Step[O], paths ...Path) Taken {
	d := s.described()
	return Taken{step: &d, failed: true, typed: valueOf[Failure], paths: paths}
}

func valueOf[T any](raw json.RawMessage) (any, error) {
	var v T
	if err := decode(raw, &v); err != nil {
		return nil, faultOf("workflow.input", "what came is no %T: %v", v, err).
			with("skip it with an output that is one, or have a type that takes it")
	}
	return v, nil
}

// Decided begins a definition that a decider decides; Upcast and Definition go on
// with it.
func Decided[S, E any](name, version string, d Decider[S, E]) *Workflow[S] {
	w := New[S](name, version)
	if d.Decide == nil || d.Evolve == nil {
		w.finding("", "workflow.decider", "the decider lacks Decide or Evolve", "")
		return w
	}
	for _, t := range d.Takes {
		h := d.handler(t)
		switch {
		case t.step == nil && w.start != nil:
			w.finding("", "workflow.twice", "the start is taken twice", "")
		case t.step == nil:
			w.start = h
		case t.failed:
			w.on(*t.step, func(known *step) **handler { return &known.failed }, h)
		default:
			w.on(*t.step, func(known *step) **handler { return &known.done }, h)
		}
	}
	return w
}

// handler decides about one input.
func (d Decider[S, E]) handler(t Taken) *handler {
	h := &handler{decide: func(raw json.RawMessage, in Input[json.RawMessage]) (*decision, error) {
		v, err := t.typed(in.Value)
		if err != nil {
			return nil, err
		}
		var s S
		if len(raw) > 0 {
			if err := decode(raw, &s); err != nil {
				return nil, faultOf("workflow.state", "the state of the instance is no %T: %v", s, err).
					with("give the workflow a new version, with an Upcast from this one")
			}
		}
		events, do := d.Decide(s, Input[any]{Value: v, Raw: in.Raw, Step: in.Step, Item: in.Item, Now: in.Now, Actor: in.Actor, Instance: in.Instance, Key: in.Key})
		did := &decision{do: do}
		for _, e := range events {
			data, err := encode(e)
			if err != nil {
				return nil, faultOf("workflow.event", "an event cannot be written as JSON: %v", err)
			}
			did.events = append(did.events, Happened{nameOf(e), data})
			s = d.Evolve(s, e)
		}
		if did.state, err = encode(s); err != nil {
			return nil, faultOf("workflow.state", "the state cannot be written as JSON: %v", err)
		}
		return did, nil
	}}
	for _, p := range t.paths {
		p(h)
	}
	return h
}

// nameOf is the type of an event in the stream: that of its Go type.
func nameOf(e any) string {
	t := reflect.TypeOf(e)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Name() == "" {
		return "Event"
	}
	return t.Name()
}

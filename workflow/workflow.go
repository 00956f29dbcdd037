// Package workflow has workflows written in Go: typed, and never replayed.
//
// A workflow is a state, a Go type of its author, and a function for each thing
// that may happen: the start, the result of a step, its failure. The function gets
// the state and what happened, and returns the next state and what is to be done,
// as data:
//
//	w := workflow.New[Order]("shop/order", "1.0.0")
//	charge := workflow.Call[Payment, Receipt]("charge", "chargeCard")
//	workflow.Start(w, func(o Order, in workflow.Input[Request]) (Order, workflow.Do) {
//		o.Cents = in.Value.Cents
//		return o, workflow.Do{charge.With(Payment{Cents: o.Cents})}
//	})
//	workflow.On(w, charge, func(o Order, in workflow.Input[Receipt]) (Order, workflow.Do) {
//		o.Receipt = in.Value.ID
//		return o, workflow.Do{workflow.Complete(o)}
//	})
//	def, err := w.Definition()
//
// Who prefers events to a new state has [Decider]: decide says what has happened
// and what is to be done, evolve makes the next state.
//
// What it promises is what a document has: state and effects are committed
// together with the message that led to them; an effect has the same key however
// often it is tried; an operator suspends, resumes, retries and skips. Nothing is
// replayed, so a function need not do the same as last week; it must do the same
// when it is asked twice at once, for a decision that met another node's is made
// again: it reads no clock (Input.Now), draws no random number and does no I/O.
//
// State and inputs are JSON by json/v2: names of fields are exact, unknown ones are
// passed over. What a step of no name answers, and events that nothing listens for
// yet, are kept. A decision that fails (a panic, a value that does not fit its type,
// an effect that cannot be) changes nothing: the instance is faulted, keeps what it
// got, and decides it again at an operator's retry.
//
// Its limits are those of the engine, and [MaxDo] effects of one decision.
package workflow

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Input is what a function decides about, beside the state.
type Input[T any] struct {
	Value T               // what came: the start's input, a step's result, an event's data, a [Failure]
	Raw   json.RawMessage // the same as it came; of an event, with its attributes
	Step  string          // whose it is; "" = the start
	Item  int             // which of those that ran side by side; see [Effect.Of]
	Now   time.Time       // when it came
	Actor string          // who did it; "" = nobody in person

	Instance string // id
	Key      string // business key of the instance
}

// Failure is how a step ended without a result, as [OnFailure] gets it and [Fail]
// says it.
type Failure struct {
	Type    string `json:"type"` // a URI
	Status  int    `json:"status"`
	Title   string `json:"title,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Unknown bool   `json:"unknown,omitempty"` // nobody knows whether it was done
}

// Workflow is a definition in the making, with states of the type S.
type Workflow[S any] struct {
	name, version string
	start         *handler
	steps         map[string]*step
	upcasts       []upcast
	wrong         []problem.Place
}

// New begins a definition: name is NAMESPACE/NAME.
func New[S any](name, version string) *Workflow[S] {
	return &Workflow[S]{name: name, version: version, steps: map[string]*step{}}
}

// handler decides about one kind of input.
type handler struct {
	decide func(state json.RawMessage, in Input[json.RawMessage]) (*decision, error)
	to     []string // names of the steps that it may ask for; see [To]
	said   bool     // it says where it leads to
}

// decision is what a function returned, as data.
type decision struct {
	state  json.RawMessage
	events []Happened
	do     Do
}

// Path says where a function may lead to; see [To].
type Path func(h *handler)

// Target is a step as [To] takes it.
type Target interface{ target() string }

// To says which steps a function may ask for, and Complete and Fail beside them. A
// decision that asks for another faults; the diagram has an arrow for each.
func To(steps ...Target) Path {
	return func(h *handler) {
		h.said, h.to = true, append([]string{}, h.to...)
		for _, s := range steps {
			h.to = append(h.to, s.target())
		}
	}
}

// Start has f decide about the beginning of an instance, on the zero state.
func Start[S, I any](w *Workflow[S], f func(S, Input[I]) (S, Do), paths ...Path) {
	if w.start != nil {
		w.finding("", "workflow.twice", "the start has two functions", "")
	}
	w.start = handle(f, paths)
}

// On has f decide about the results of a step.
func On[S, O any](w *Workflow[S], s Step[O], f func(S, Input[O]) (S, Do), paths ...Path) {
	w.on(s.described(), func(known *step) **handler { return &known.done }, handle(f, paths))
}

// OnFailure has f decide when a step has failed for good or timed out. Without it
// the workflow fails: what it has completed is compensated, and it is faulted.
func OnFailure[S, O any](w *Workflow[S], s Step[O], f func(S, Input[Failure]) (S, Do), paths ...Path) {
	w.on(s.described(), func(known *step) **handler { return &known.failed }, handle(f, paths))
}

// on adds a handler to a step.
func (w *Workflow[S]) on(s step, which func(*step) **handler, h *handler) {
	known := w.steps[s.Name]
	if known == nil {
		known = &s
		w.steps[s.Name] = known
	}
	place := which(known)
	switch {
	case s.Name == "":
		w.finding("", "workflow.effect-name", "a step of the kind "+s.Kind+" has no name", "give it one: it says where its instances are")
	case !known.same(s):
		w.finding(pointerOf(s.Name), "workflow.twice", "two different steps have the name "+s.Name, "give each a name of its own")
	case *place != nil:
		w.finding(pointerOf(s.Name), "workflow.twice", "two functions take the same of the step "+s.Name, "")
	}
	for _, wrong := range known.wrong {
		w.finding(pointerOf(s.Name), "workflow.step", wrong, "")
	}
	known.wrong = nil
	if *place == nil {
		*place = h
	}
}

func (w *Workflow[S]) finding(pointer, code, detail, hint string) {
	w.wrong = append(w.wrong, problem.Place{Pointer: pointer, Code: code, Detail: detail, Hint: hint})
}

// handle makes a handler of a typed function.
func handle[S, I any](f func(S, Input[I]) (S, Do), paths []Path) *handler {
	h := &handler{decide: func(raw json.RawMessage, in Input[json.RawMessage]) (*decision, error) {
		s, typed, err := decoded[S, I](raw, in)
		if err != nil {
			return nil, err
		}
		s, do := f(s, typed)
		state, err := encode(s)
		if err != nil {
			return nil, faultOf("workflow.state", "the state cannot be written as JSON: %v", err)
		}
		return &decision{state: state, do: do}, nil
	}}
	for _, p := range paths {
		p(h)
	}
	return h
}

// decoded are state and input in the author's types.
func decoded[S, I any](raw json.RawMessage, in Input[json.RawMessage]) (s S, typed Input[I], err error) {
	if len(raw) > 0 {
		if err := decode(raw, &s); err != nil {
			return s, typed, faultOf("workflow.state", "the state of the instance is no %T: %v", s, err).
				with("give the workflow a new version, with an Upcast from this one")
		}
	}
	typed = Input[I]{Raw: in.Raw, Step: in.Step, Item: in.Item, Now: in.Now, Actor: in.Actor, Instance: in.Instance, Key: in.Key}
	if err := decode(in.Value, &typed.Value); err != nil {
		return s, typed, faultOf("workflow.input", "what came is no %T: %v", typed.Value, err).
			with("skip it with an output that is one, or have a type that takes it")
	}
	return s, typed, nil
}

// Definition checks what there is and makes a definition of it, for
// definition.Catalogue.Register. Problem: workflow.invalid, with everything that is
// wrong.
func (w *Workflow[S]) Definition() (*Definition, error) {
	wrong := slices.Clone(w.wrong)
	if w.name == "" || w.version == "" {
		wrong = append(wrong, problem.Place{Code: "workflow.name", Detail: "the workflow lacks a name or a version"})
	}
	if w.start == nil {
		wrong = append(wrong, problem.Place{Code: "workflow.start", Detail: "no function decides about the start", Hint: "workflow.Start(w, ...)"})
	}
	for _, name := range slices.Sorted(maps.Keys(w.steps)) {
		wrong = append(wrong, w.steps[name].check(w.steps)...)
	}
	if w.start != nil {
		wrong = append(wrong, w.start.check("", w.steps)...)
	}
	if _, err := encode(*new(S)); err != nil {
		wrong = append(wrong, problem.Place{Code: "workflow.state", Detail: fmt.Sprintf("the state cannot be written as JSON: %v", err)})
	}
	upcasts, holes := chains(w.upcasts, w.version, reflect.TypeFor[S]())
	if wrong = append(wrong, holes...); len(wrong) > 0 {
		e := problem.New(problem.Invalid, "workflow.invalid", "workflow %s@%s: %d findings", w.name, w.version, len(wrong))
		e.Where = wrong
		return nil, e
	}
	d := &Definition{start: w.start, steps: map[string]*step{}, upcasts: upcasts}
	for _, s := range w.steps {
		d.steps[pointerOf(s.Name)] = s
	}
	d.ref = snapshot.Definition{Name: w.name, Version: w.version}
	var err error
	if d.document, err = encode(d.declared()); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(d.document)
	d.ref.Digest = hex.EncodeToString(sum[:])
	return d, nil
}

// check says what is wrong with where a handler leads to.
func (h *handler) check(pointer string, steps map[string]*step) (wrong []problem.Place) {
	for _, name := range h.to {
		if steps[name] == nil {
			wrong = append(wrong, problem.Place{Pointer: cmp.Or(pointer, "/start"), Code: "workflow.step-unknown",
				Detail: fmt.Sprintf("it leads to the step %q, which no function takes the results of", name), Hint: "workflow.On(w, ...)"})
		}
	}
	return wrong
}

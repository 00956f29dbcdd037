package workflow

import (
	"encoding/json"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Happening is what a decision is about, for those who ask for one outside of an
// instance, as a test does.
type Happening struct {
	Step   Target // nil = the start
	Value  json.RawMessage
	Failed bool // the value is a [Failure]
	Item   int
	Now    time.Time
	Actor  string

	Instance, Key string
}

// Decision is what a function has decided, as data.
type Decision struct {
	State  json.RawMessage `json:"state"`
	Events []Happened      `json:"events,omitempty"`
	Do     Do              `json:"do,omitempty"`
}

// Happened is an event of a [Decider], as the stream has it.
type Happened struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// Decide makes one decision, on a state as JSON; nothing comes of it. Problems: the
// codes of faults, such as workflow.panic.
func (d *Definition) Decide(state json.RawMessage, about Happening) (Decision, error) {
	h := d.start
	in := Input[json.RawMessage]{
		Value: about.Value, Raw: about.Value, Item: about.Item, Now: about.Now, Actor: about.Actor, Instance: about.Instance, Key: about.Key,
	}
	if about.Step != nil {
		h, in.Step = nil, about.Step.target()
		if s := d.steps[pointerOf(in.Step)]; s != nil && about.Failed {
			h = s.failed
		} else if s != nil {
			h = s.done
		}
	}
	if h == nil {
		return Decision{}, problem.New(problem.Invalid, "workflow.step-unknown", "no function of %s decides about this of the step %q", d.ref.Name, in.Step)
	}
	did, err := asked(h, state, in)
	if f, ok := err.(*fault); ok {
		return Decision{}, problem.New(problem.Invalid, f.code, "%s", f.Error())
	}
	if err != nil {
		return Decision{}, err
	}
	for i, e := range did.do {
		if e.err != nil {
			return Decision{}, problem.Wrap(e.err, problem.Invalid, "workflow.effect", "effect %d, %s", i, e.Kind)
		}
	}
	return Decision{State: did.state, Events: did.events, Do: did.do}, nil
}

// JSON is a value in the form that a workflow has it in.
func JSON(v any) (json.RawMessage, error) { return encode(v) }

// EventOf is an event of a decider, with its data.
func EventOf(e any, data json.RawMessage) Happened { return Happened{nameOf(e), data} }

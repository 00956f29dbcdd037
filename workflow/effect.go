package workflow

import (
	"encoding/json"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// MaxDo bounds the effects of one decision.
const MaxDo = 1_000

// Do is what a decision asks for, in order. It may ask for several things at once,
// and for nothing while something is open.
type Do []Effect

// Effect is one of them: plain data, made by a step or by a function of this
// package. Its methods return a changed copy.
type Effect struct {
	Kind       string            `json:"kind,omitempty"`
	Step       string            `json:"step,omitempty"`
	Item       int               `json:"item,omitempty"`
	Target     string            `json:"target,omitempty"`
	Input      json.RawMessage   `json:"input,omitempty"`
	Keys       map[string]string `json:"keys,omitempty"`       // that an event must have, each canonical JSON
	After      time.Duration     `json:"after,omitzero"`       // of a timer
	Until      time.Time         `json:"untilUtc,omitzero"`    // of a timer
	Limit      time.Duration     `json:"timeout,omitzero"`     // of the whole step
	Ack        time.Duration     `json:"ack,omitzero"`         // the result is what a consumer acknowledges
	Again      *Retry            `json:"retry,omitempty"`      // nil = as the node says
	Compensate *FunctionCall     `json:"compensate,omitempty"` // what compensates it

	err error
}

// Retry is how often a call is tried. It replaces the node's own policy.
type Retry struct {
	Times  int           `json:"times"`           // after the first attempt
	Delay  time.Duration `json:"delay,omitzero"`  // before the first of them
	Factor int           `json:"factor,omitzero"` // by which each delay is longer than the one before; 0 = 1
}

// FunctionCall is a call of a function that compensates, or what stands for a person,
// a child or an acknowledged call.
type FunctionCall struct {
	Function string          `json:"function"`
	Input    json.RawMessage `json:"input,omitempty"`
}

// Person is what is asked of a person: fields as those of a document's humanTask.
type Person struct {
	Title           string          `json:"title,omitempty"`
	Assignee        string          `json:"assignee,omitempty"`
	CandidateUsers  []string        `json:"candidateUsers,omitempty"`
	CandidateGroups []string        `json:"candidateGroups,omitempty"`
	ExcludedUsers   []string        `json:"excludedUsers,omitempty"`
	Payload         any             `json:"payload,omitempty"`
	Form            json.RawMessage `json:"form,omitempty"`     // {schema} or {ref, version}
	Priority        *int            `json:"priority,omitempty"` // 0 to 100; nil = 50
	Due             time.Duration   `json:"due,omitzero"`
	EscalateTo      []string        `json:"escalateTo,omitempty"` // groups, once it is due
	Outcomes        []string        `json:"outcomes,omitempty"`
}

// Of tells apart effects of one step that run side by side; the Input of each result
// has its item.
func (e Effect) Of(item int) Effect {
	e.Item = item
	return e
}

// Timeout is after which the step fails with the type [TypeTimeout], however many
// attempts it has made: what it asked for is withdrawn, and it is not tried again.
func (e Effect) Timeout(d time.Duration) Effect {
	e.Limit = d
	return e
}

// Acknowledged makes of a call's answer a delivery: the result is what the consumer
// acknowledges, and without one for so long it is delivered again.
func (e Effect) Acknowledged(within time.Duration) Effect {
	e.Ack = within
	return e
}

// Retry has a call, a request or a child that failed tried again, so many times.
func (e Effect) Retry(r Retry) Effect {
	e.Again = &r
	return e
}

// CompensateWith has a function undo the call when the workflow fails. It is recorded
// before the call is sent, so that one of an unknown outcome is undone, too; one
// that is known to have failed is not.
func (e Effect) CompensateWith(function string, input any) Effect {
	raw, err := encode(input)
	if e.Compensate = (&FunctionCall{function, raw}); err != nil {
		e.err = err
	}
	return e
}

// Compensation records that a function undoes something when the workflow fails, for
// what is only known from a result. The last recorded is undone first. Of the name of
// the step that is decided about, it takes the place of the step's CompensateWith.
func Compensation(name, function string, input any) Effect {
	e := Effect{Kind: kindCompensate, Step: name}.CompensateWith(function, input)
	return e
}

// CallKey stands, in the input of what compensates a call, for the idempotency key of that
// call, which is not known when it is asked for: alone or inside a text.
const CallKey = "aqueduct:key-of-the-call"

// CompensateBy is CompensateWith for what is more than a function: the effect of a step
// asks a person, runs a child, or makes a call, acknowledged or not. The next
// compensation begins when it has ended. No function decides about its result: a
// child that fails, a command whose consumer says so, and a person who gives another
// outcome than the first of the Outcomes stop the instance, for an operator.
func (e Effect) CompensateBy(by Effect) Effect {
	var err error
	if e.Compensate, err = meansOf(by); err != nil {
		e.err = err
	}
	return e
}

// CompensationBy is [Compensation] by the effect of a step.
func CompensationBy(name string, by Effect) Effect {
	return Effect{Kind: kindCompensate, Step: name}.CompensateBy(by)
}

// Emit publishes a CloudEvent. Its id is made of the instance and the moment, so that
// it is one event however often it is sent.
func Emit(eventType string, data any) Effect {
	e := Effect{Kind: kindEmit, Target: eventType}
	e.Input, e.err = encode(data)
	return e
}

// Withdraw goes back on what is open of a step and an item: a timer is stopped, a
// task taken back, a child cancelled. Nothing happens when it is over.
func Withdraw(s Target, item int) Effect {
	return Effect{Kind: kindWithdraw, Step: s.target(), Item: item}
}

// Complete ends the instance with its output, and withdraws what is open. It is the
// last effect.
func Complete(output any) Effect {
	e := Effect{Kind: kindComplete}
	e.Input, e.err = encode(output)
	return e
}

// Fail ends the workflow with an error: what is recorded is compensated, the last
// first, and the instance is faulted. The decision changes nothing else, so that an
// operator's retry makes it again.
func Fail(f Failure) Effect {
	e := Effect{Kind: kindFail}
	e.Input, e.err = encode(f)
	return e
}

// TypeTimeout is the type of the failure of a step that timed out.
const TypeTimeout = engine.ErrorBase + engine.ErrTimeout

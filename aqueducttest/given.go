package aqueducttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// Case is one decision of a workflow in Go: given a state, when something happens, then
// a state, events and effects.
//
//	aqueducttest.Given(t, def, Order{Cents: 5}).
//		When(charge, Receipt{ID: "r-1"}).
//		Then(Order{Cents: 5, Receipt: "r-1"}, ship.With(Address{}))
//
// Every decision is made several times, each on values of its own; one that differs is
// impure, and fails the test.
type Case struct {
	t     TB
	def   *workflow.Definition
	state json.RawMessage
	did   workflow.Decision
}

// decisions is how often one is made to find that it is impure: the order of a map, for
// one, is often the same twice.
const decisions = 32

// Given begins a case in a state of the workflow's type; nil is that before the start.
func Given(t TB, def *workflow.Definition, state any) *Case {
	t.Helper()
	c := &Case{t: t, def: def}
	if state != nil {
		c.state = c.json(state)
	}
	return c
}

func (c *Case) json(v any) json.RawMessage {
	c.t.Helper()
	raw, err := workflow.JSON(v)
	if err != nil {
		c.t.Fatalf("aqueducttest: %v", err)
	}
	return raw
}

// WhenStarted has the workflow decide about its start.
func (c *Case) WhenStarted(input any) *Case {
	c.t.Helper()
	return c.when(workflow.Happening{Value: c.json(input)})
}

// When has the workflow decide about the result of a step: what its function gets, or a
// workflow.Failure.
func (c *Case) When(step workflow.Target, result any) *Case {
	c.t.Helper()
	_, failed := result.(workflow.Failure)
	return c.when(workflow.Happening{Step: step, Value: c.json(result), Failed: failed})
}

// WhenAll is [Case.When] with all that a function gets beside the value.
func (c *Case) WhenAll(h workflow.Happening) *Case {
	c.t.Helper()
	return c.when(h)
}

func (c *Case) when(h workflow.Happening) *Case {
	c.t.Helper()
	if h.Now.IsZero() {
		h.Now = Epoch
	}
	for i := range decisions {
		did, err := c.def.Decide(bytes.Clone(c.state), h)
		if err != nil {
			c.t.Fatalf("aqueducttest: %v", err)
		}
		if i == 0 {
			c.did = did
		} else if a, b := c.json(c.did), c.json(did); !bytes.Equal(a, b) {
			c.t.Fatalf("aqueducttest: %v", impure(a, b))
		}
	}
	c.state = c.did.State
	return c
}

// impure is the problem of a decision that came to two ends.
func impure(one, other []byte) error {
	return problem.New(problem.Invalid, "workflow.impure", "the decision is impure; made twice, it is\n  %s\n  %s\n", one, other).
		WithHint("take the time from the input, sort what comes of a map, and draw no random numbers")
}

// Then fails the test unless the decision came to this state and these effects, in
// their order.
func (c *Case) Then(state any, effects ...workflow.Effect) *Case {
	c.t.Helper()
	if want := c.json(state); !bytes.Equal(want, c.did.State) {
		c.t.Errorf("aqueducttest: the state is\n  %s, want\n  %s", c.did.State, want)
	}
	if got, want := c.lines(c.did.Do), c.lines(effects); got != want {
		c.t.Errorf("aqueducttest: the effects are\n%swant\n%s", got, want)
	}
	return c
}

// ThenEvents fails the test unless these events of a decider happened.
func (c *Case) ThenEvents(events ...any) *Case {
	c.t.Helper()
	want := make([]workflow.Happened, len(events))
	for i, e := range events {
		want[i] = workflow.EventOf(e, c.json(e))
	}
	if got, want := c.json(c.did.Events), c.json(want); !bytes.Equal(got, want) {
		c.t.Errorf("aqueducttest: the events are\n  %s, want\n  %s", got, want)
	}
	return c
}

func (c *Case) lines(effects workflow.Do) string {
	c.t.Helper()
	var b strings.Builder
	for _, e := range effects {
		fmt.Fprintf(&b, "  %s\n", c.json(e))
	}
	return b.String()
}

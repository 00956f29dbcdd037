package aqueducttest

import (
	"encoding/json"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// Trigger triggers an event of a lifecycle, by its name or code, with data,
// and goes on. It fails the test when the event is refused: see
// [Workflow.Refuses].
func (w *Workflow) Trigger(event string, data any) *Workflow {
	w.t.Helper()
	return w.TriggerAs("", event, data)
}

// TriggerAs is [Workflow.Trigger] by a person, who is in the groups that
// [Workflow.Groups] says: an event that is for roles asks for them. [Workflow.Trigger]
// is by the program itself, which nobody asks.
func (w *Workflow) TriggerAs(actor, event string, data any) *Workflow {
	w.t.Helper()
	w.driver.started()
	w.driver.deliver(w.driver.trigger(actor, event, data))
	w.driver.run()
	return w
}

// Refuses fails the test unless an event of a lifecycle is refused now, with
// that code: lifecycle.refused, lifecycle.invalid-payload,
// lifecycle.unknown-event or lifecycle.in-transition. Nothing is changed.
func (w *Workflow) Refuses(code, event string, data any) *Workflow {
	w.t.Helper()
	return w.driver.refuses("", code, event, data)
}

// Forbids fails the test unless an event of a lifecycle is refused to a person with
// event.forbidden, because they have none of the roles that it is for.
func Forbids(w *Workflow, actor, event string) *Workflow {
	w.t.Helper()
	return w.driver.refuses(actor, "event.forbidden", event, nil)
}

func (w driver) refuses(actor, code, event string, data any) *Workflow {
	w.t.Helper()
	w.started()
	_, err := engine.Step(w.def, w.snap, w.input(w.trigger(actor, event, data)))
	switch {
	case err == nil:
		w.t.Errorf("aqueducttest: event %s is not refused; the instance is %s", event, w.where())
	case problem.CodeOf(err) != code:
		w.t.Errorf("aqueducttest: event %s is refused with another code than %s: %v", event, code, err)
	}
	return w.Workflow
}

// State is the state of a lifecycle in which the instance is, and FROM->TO
// between two.
func (w *Workflow) State() string { return w.snap.State.Name }

func (w driver) trigger(actor, event string, data any) signal.Envelope {
	w.t.Helper()
	env := w.signal(signal.ExternalSignal, "", map[string]any{"type": event, "data": w.json(data)}, actor)
	by := map[string]any{"kind": "node"}
	if actor != "" {
		by = map[string]any{"kind": "user", "name": actor, "groups": w.Groups[actor]}
	}
	env.Principal, _ = json.Marshal(by) // of texts
	return env
}

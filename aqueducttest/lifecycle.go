package aqueducttest

import (
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

// TriggerAs is [Workflow.Trigger] by a person.
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
	w.driver.started()
	_, err := engine.Step(w.def, w.snap, w.driver.input(w.driver.trigger("", event, data)))
	switch {
	case err == nil:
		w.t.Errorf("aqueducttest: event %s is not refused; the instance is %s", event, w.driver.where())
	case problem.CodeOf(err) != code:
		w.t.Errorf("aqueducttest: event %s is refused with another code than %s: %v", event, code, err)
	}
	return w
}

// State is the state of a lifecycle in which the instance is, and FROM->TO
// between two.
func (w *Workflow) State() string { return w.snap.State.Name }

func (w driver) trigger(actor, event string, data any) signal.Envelope {
	w.t.Helper()
	return w.signal(signal.ExternalSignal, "", map[string]any{"type": event, "data": w.json(data)}, actor)
}

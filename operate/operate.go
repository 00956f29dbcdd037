// Package operate decides what an operator asks of one instance (B8).
package operate

import (
	"encoding/json"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Operate decides what an operation does. in.Signal carries the actor in its
// headers; output is what a skipped task is taken to have answered (nil = null), and
// [Which] of a RunNow. Problems: instance.closed, instance.not-faulted,
// instance.compensated, instance.suspended, instance.not-suspended,
// instance.not-compensable, instance.compensating, effect.undecided,
// instance.nothing-to-run, instance.several-to-run.
func Operate(def engine.Definition, snap snapshot.Snapshot, op engine.Operation, output json.RawMessage, in engine.Input) (*engine.Outcome, error) {
	return engine.Decide(def, snap, in, func(t *engine.Turn) error {
		t.Basis.By, t.Basis.With = string(op), output
		switch op {
		case engine.Suspend:
			return suspend(t)
		case engine.Resume:
			return resume(t)
		case engine.Cancel:
			t.Operated(engine.EntryCancelled)
			t.Cancel()
			return nil
		case engine.Compensate:
			return compensated(def, t)
		case engine.Retry, engine.RetrySame, engine.RetryNew, engine.Skip:
			return goOn(def, t, op, output)
		case RunNow:
			return runNow(t, output)
		case Rewind:
			return rewind(def, t, output)
		}
		return problem.New(problem.Invalid, "operation.unknown", "operation %q is unknown", op)
	})
}

func conflict(t *engine.Turn, code, detail string) *problem.Error {
	return problem.New(problem.Conflict, code, "instance %s %s", t.Snap.InstanceID, detail)
}

// suspend has signals kept from now on.
func suspend(t *engine.Turn) error {
	switch t.Snap.Status {
	case snapshot.Suspended:
		return conflict(t, "instance.suspended", "is suspended already")
	case snapshot.Faulted:
		return conflict(t, "instance.faulted", "is faulted: nothing goes on until it is retried or skipped")
	}
	t.Snap.ResumeAs, t.Snap.Status = t.Snap.Status, snapshot.Suspended
	t.Operated(engine.EntrySuspended)
	t.TellAll(engine.TaskSuspendedEvent)
	t.Tell(engine.LifecycleEvent{Type: engine.WorkflowSuspendedEvent})
	return nil
}

// resume applies what was kept.
func resume(t *engine.Turn) error {
	if t.Snap.Status != snapshot.Suspended {
		return conflict(t, "instance.not-suspended", "is "+string(t.Snap.Status))
	}
	t.Operated(engine.EntryResumed)
	t.Snap.Status, t.Snap.ResumeAs = t.Snap.ResumeAs, ""
	t.Tell(engine.LifecycleEvent{Type: engine.WorkflowResumedEvent})
	t.TellAll(engine.TaskResumedEvent)
	return t.CatchUp()
}

// compensated ends the instance once what it has done is compensated.
func compensated(def engine.Definition, t *engine.Turn) error {
	d, ok := def.(engine.Compensator)
	c := t.Snap.Compensating
	switch {
	case !ok || t.Snap.Schedule != nil:
		return conflict(t, "instance.not-compensable", "runs nothing that can be compensated").WithHint("cancel it without")
	case c != nil && !c.Done:
		return conflict(t, "instance.compensating", "compensates already").WithHint("where it is stuck, retry or skip what failed")
	}
	t.Operated(engine.EntryCancelled)
	if !d.Compensate(t, false) {
		t.Cancel() // it has done nothing
	}
	return nil
}

// goOn has a faulted instance go on.
func goOn(def engine.Definition, t *engine.Turn, op engine.Operation, output json.RawMessage) error {
	s := t.Snap
	switch {
	case s.Status != snapshot.Faulted:
		return conflict(t, "instance.not-faulted", "is "+string(s.Status)+", not faulted")
	case op == engine.Retry && s.Error != nil && s.Error.Type == engine.TypeUndecided:
		return problem.New(problem.Conflict, "effect.undecided", "instance %s: %s", s.InstanceID, s.Error.Detail).
			WithHint("ask the outside what became of it, then retry-same, retry-new or skip")
	case s.Compensating != nil && s.Compensating.Done:
		return conflict(t, "instance.compensated", "has compensated what it had completed: start it anew, and cancel this one")
	}
	entry := engine.EntryRetried
	if op == engine.Skip {
		entry = engine.EntrySkipped
	} else {
		t.Retry, output = op, nil
	}
	t.Operated(entry)
	s.Status = snapshot.Running
	t.Tell(engine.LifecycleEvent{Type: engine.WorkflowResumedEvent})
	return def.Recover(t, op, output)
}

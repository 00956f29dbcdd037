// Package compensate undoes what an instance has completed, the last step first: all
// of it, after an error that nobody caught, or one step at a time as a definition
// asks. What there is to compensate stands in the snapshot, and a definition that
// never calls this package compensates nothing.
package compensate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// TypeStuck is the type of the error of an instance whose compensation has failed for
// good, so that lists show it: it goes on by an operator's retry or skip.
const TypeStuck = "urn:aqueduct:error:compensation-stuck"

// All begins to compensate what the instance has recorded, after an error that
// nobody caught: the instance ends with it when that is done. Until then the
// definition has [Resume] and [Recover] take what it is asked. Where nothing is recorded,
// and no child has anything either, the instance is faulted; so it is by an error that
// is the author's to mend, whatever is recorded.
func All(t *engine.Turn, e snapshot.Error) {
	switch s := t.Snap; {
	case len(s.Compensations)+len(s.SubFrames) == 0:
		t.Fault(e)
	case authors(e):
		t.Halt(e) // who waits for the instance waits on: it goes on when it is mended, or undoes what it has done
	default:
		begin(t, snapshot.Compensating{Error: e})
	}
}

// authors reports whether an error is the author's to mend: what was done before it was right.
func authors(e snapshot.Error) bool {
	return engine.SameType(e.Type, engine.ErrorBase+engine.ErrExpression) || engine.SameType(e.Type, engine.ErrorBase+engine.ErrConfiguration)
}

// Compensator is embedded by a definition whose instances compensate when somebody
// ends them.
type Compensator struct{}

// Compensate is [All] for an instance that somebody ends, whatever its state.
func (Compensator) Compensate(t *engine.Turn, alone bool) bool {
	s := t.Snap
	if s.Status == snapshot.Suspended {
		refusedMeanwhile(s)
	}
	if s.Schedule != nil || len(s.Compensations)+len(s.SubFrames) == 0 {
		return false
	}
	if alone && s.Parent != nil {
		p := *s.Parent
		p.Token, s.Parent = "", &p
	}
	if s.Compensating != nil { // already
		return true
	}
	if s.Status != snapshot.Faulted { // else they have ended with the fault
		t.TellAll(engine.TaskCancelledEvent)
	}
	kept := s.Status == snapshot.Suspended
	s.Status, s.ResumeAs = snapshot.Running, ""
	begin(t, snapshot.Compensating{Cancelled: true, Error: snapshot.Error{
		Type: engine.ErrorBase + engine.ErrRuntime, Status: 500, Title: "Cancelled", Detail: "it was cancelled",
	}})
	if !kept {
		return true
	}
	if err := t.CatchUp(); err != nil { // a child may have ended meanwhile
		t.Halt(snapshot.Error{
			Type: TypeStuck, Status: 500, Title: "Compensation not possible",
			Detail: "what came while it was suspended cannot be applied: " + err.Error(),
		})
	}
	return true
}

// refusedMeanwhile forgets what undoes commands whose answers came while the instance was
// suspended, and say that nothing was done: begin withdraws what they are answers to.
func refusedMeanwhile(s *snapshot.Snapshot) {
	for _, b := range s.Buffer {
		var answer struct {
			Error   *json.RawMessage `json:"error"`
			Unknown bool             `json:"unknown"`
			Open    bool             `json:"open"`
		}
		w, ok := s.Wait(b.Token)
		if ok && jsonv2.Unmarshal(b.Payload, &answer) == nil && answer.Error != nil && !answer.Unknown && !answer.Open {
			Refused(s, w.Effect)
		}
	}
}

// Refused forgets what undoes an effect that is under way: the outside is known to have
// done nothing.
func Refused(s *snapshot.Snapshot, effect string) {
	if effect == "" {
		return
	}
	s.Compensations = slices.DeleteFunc(slices.Clone(s.Compensations), func(c snapshot.Compensation) bool {
		return c.Effect == effect && c.Open && !c.Unknown
	})
	if len(s.Compensations) == 0 {
		s.Compensations = nil
	}
}

// entryCompensated is the stream's record of the end of an instance that has
// compensated what it had done.
const entryCompensated = "InstanceCompensated"

// end ends an instance that has compensated what it had done, and tells its parent
// why.
func end(t *engine.Turn) {
	c := *t.Snap.Compensating
	c.Done = true
	t.Snap.Branches, t.Snap.Buffer, t.Snap.Ahead, t.Snap.Compensations = nil, nil, nil, nil
	t.Snap.Status, t.Snap.Error, t.Snap.Compensating = snapshot.Compensated, &c.Error, &c
	data, _ := json.Marshal(c.Error)
	t.Append(engine.Entry{Kind: engine.KindEvent, Dir: engine.Out, Type: entryCompensated, Data: data, Meta: engine.Meta{Pointer: c.Error.Instance}})
	if c.Cancelled {
		t.Tell(engine.LifecycleEvent{Type: engine.WorkflowCancelledEvent})
	} else {
		t.Tell(engine.LifecycleEvent{Type: engine.WorkflowFaultedEvent, Error: &c.Error})
	}
	engine.TellParent(t, nil, &c.Error)
}

func begin(t *engine.Turn, why snapshot.Compensating) {
	t.Withdraw(engine.TaskCancelled, func(w snapshot.Wait) bool { return !undoes(w) })
	why.Children = len(t.Snap.SubFrames) > 0 // they compensate first, or end what they compensate
	t.Snap.Error, t.Snap.Compensating = &why.Error, &why
	data, _ := json.Marshal(map[string]any{"error": why.Error, "steps": len(t.Snap.Compensations)})
	t.Append(engine.Entry{Kind: engine.KindEvent, Dir: engine.Out, Type: engine.EntryCompensating, Data: data, Meta: engine.Meta{Pointer: why.Error.Instance}})
	if !why.Children {
		next(t)
	}
}

// next sends the command that compensates the step sent last, or ends the instance
// when none is left.
func next(t *engine.Turn) {
	s := t.Snap
	if len(s.Compensations) == 0 {
		end(t)
		return
	}
	c := s.Compensations[len(s.Compensations)-1]
	if Crowded(t, c) {
		t.Await(snapshot.Wait{Kind: snapshot.WaitNext, Pointer: c.Pointer})
		return
	}
	if e := Send(t, c, snapshot.Wait{Pointer: c.Pointer}); e != nil {
		t.Halt(*e)
	}
}

// Crowded reports whether a compensation is a step of the application for which the transaction
// of this turn has had too many: it is for the next turn.
func Crowded(t *engine.Turn, c snapshot.Compensation) bool {
	return t.In.Crowded && engine.Inside(c.Target)
}

// lacking is the error of a compensation that cannot be sent, because its arguments
// are made of an answer that never came.
func lacking(c snapshot.Compensation) *snapshot.Error {
	detail := "nobody knows what became of %s, sent as %s, and without its output its compensation has no arguments: %s. " +
		"Ask the outside, undo it there if it was done, and skip it"
	if !c.Open {
		detail = "%s, sent as %s, was done, and its compensation has no arguments: they failed on its output, and on its input alone: %s. " +
			"Undo it by hand, and skip it"
	}
	return &snapshot.Error{
		Type: TypeStuck, Status: 400, Title: "Compensation without arguments", Instance: c.Pointer,
		Detail: fmt.Sprintf(detail, c.Pointer, c.Effect, c.Lacks),
	}
}

// Done takes the result of a compensation, and forgets it: a retry that runs its
// task again makes another effect. One that failed for good is kept, and the error
// names it.
func Done(t *engine.Turn, w snapshot.Wait, res engine.Result) *snapshot.Error {
	i := slices.IndexFunc(t.Snap.Compensations, func(c snapshot.Compensation) bool { return c.Step == w.Arm })
	if e := over(t, w); e != nil {
		res.Error = e
	}
	if i >= 0 && res.Error == nil {
		res.Error = refused(t.Snap.Compensations[i], res.Output)
	}
	if res.Error != nil {
		e := *res.Error
		e.Instance = w.Pointer
		if i >= 0 {
			e.Instance = t.Snap.Compensations[i].Pointer
		}
		e.Detail = strings.TrimSuffix(fmt.Sprintf("compensation of %s failed: %s", e.Instance, e.Detail), ": ")
		return &e
	}
	if i >= 0 {
		t.Effects.Compensated(t.Snap.Compensations[i])
		t.Snap.Compensations = slices.Delete(slices.Clone(t.Snap.Compensations), i, i+1)
	}
	return nil
}

// Resume goes on with what [All] or a [Compensator] began; false: nothing has.
func Resume(t *engine.Turn, w snapshot.Wait, res engine.Result) bool {
	why := t.Snap.Compensating
	if why != nil && w.Kind == snapshot.WaitNext {
		next(t)
		return true
	}
	if !undoes(w) { // what undoes a compensation nobody wants
		engine.Adopt(t, w, res.Compensations)
	} else if w.Left > 0 || why != nil && why.Children {
		Done(t, w, res) // it was under way in a catch; one that has failed is asked for again
	}
	switch {
	case why == nil:
		return false
	case why.Children && len(t.Snap.SubFrames) > 0:
		return true
	case why.Children:
		after := *why
		after.Children, t.Snap.Compensating = false, &after
		if len(t.Snap.Compensations) == 0 && !why.Cancelled { // it has done nothing, and can be mended
			t.Snap.Compensating = nil
			t.Fault(why.Error)
			return true
		}
	default:
		if e := Done(t, w, res); e != nil {
			e.Detail += " (" + e.Type + ")"
			e.Type = TypeStuck
			t.Halt(*e) // who waits for the instance waits on, for it has not ended
			return true
		}
	}
	next(t)
	return true
}

// Recover has an operator's retry or skip go on with the compensation that failed,
// which a skip takes as done; false: the instance has not begun to compensate.
func Recover(t *engine.Turn, op engine.Operation) bool {
	s := t.Snap
	if s.Compensating == nil {
		return false
	}
	if last := len(s.Compensations) - 1; op == engine.Skip && last >= 0 {
		s.Compensations = slices.Delete(slices.Clone(s.Compensations), last, last+1)
	}
	s.Error = &s.Compensating.Error
	if s.Compensating.Children && len(s.SubFrames) == 0 { // the last child's end came in the turn that could not be written
		after := *s.Compensating
		after.Children, s.Compensating = false, &after
	}
	if !s.Compensating.Children {
		next(t)
	}
	return true
}

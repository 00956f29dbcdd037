package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// MaxCompensations bounds the compensations that an instance records. A task
// that has one and would begin beyond it raises an error instead.
const MaxCompensations = 1_000

// compensable raises an error when there is no room for what the task n would
// record at its end: an effect that cannot be compensated is not begun.
func (r *run) compensable(n *Node) error {
	if n.Compensate != nil && len(r.t.Snap.Compensations) >= MaxCompensations {
		return raise(ErrRuntime, 500, "Limit exceeded", fmt.Sprintf("%d compensations are recorded", MaxCompensations))
	}
	return nil
}

// record notes what undoes the task n, which is completing: the data is its
// output, as the next task sees it.
func (r *run) record(n *Node) error {
	if n.Compensate == nil {
		return nil
	}
	out := r.data
	r.out = &out
	defer func() { r.out = nil }()
	with, err := r.eval(n.Compensate.With)
	if err != nil {
		return err
	}
	raw, err := with.Raw(r.t.In.Limits.Expression.Bytes)
	if err != nil {
		return err
	}
	s := r.t.Snap
	frames := line(s, r.b) // with the task's own, which is no loop around it
	p := place{pointer: n.Pointer, visit: r.p.visit(frames[:len(frames)-1])}
	c := Command{Target: n.Compensate.Target, Input: raw}
	undone := r.t.redone(p)
	if moved, ok := s.Moved[undone.pointer]; ok {
		undone.pointer = moved
	}
	undone.pointer += "/compensate"
	key := r.key(undone, c.digest())
	s.LastStep++
	done := snapshot.Compensation{Step: s.LastStep, Pointer: n.Pointer, Target: c.Target, Input: raw, Key: key, Visit: p.visit}
	i := slices.IndexFunc(s.Compensations, func(old snapshot.Compensation) bool { return old.Key == key })
	if i < 0 {
		s.Compensations = append(slices.Clip(s.Compensations), done)
		return nil
	}
	// A retry has run the task again, which has done nothing more than before:
	// it keeps its place, and belongs to this run of the try around it.
	s.Compensations = slices.Clone(s.Compensations)
	s.Compensations[i] = done
	return nil
}

// undo begins to compensate after an error that nobody caught. The instance is
// faulted with it when that is done.
func (t *Turn) undo(e snapshot.Error) {
	t.Withdraw(TaskCancelled, func(snapshot.Wait) bool { return true })
	t.Snap.Error, t.Snap.Undo = &e, &snapshot.Undo{Error: e}
	data, _ := json.Marshal(map[string]any{"error": e, "steps": len(t.Snap.Compensations)})
	t.Append(Entry{Kind: KindEvent, Dir: Out, Type: EntryUndo, Data: data, Meta: Meta{Pointer: e.Instance}})
	t.undoNext()
}

// undoNext sends the command that compensates the step completed last, or
// faults the instance when none is left.
func (t *Turn) undoNext() {
	s := t.Snap
	if len(s.Compensations) == 0 {
		s.Undo = &snapshot.Undo{Error: s.Undo.Error, Done: true}
		t.Fault(s.Undo.Error)
		return
	}
	t.compensate(s.Compensations[len(s.Compensations)-1], snapshot.Wait{})
}

// compensate sends the command of one compensation.
func (t *Turn) compensate(c snapshot.Compensation, w snapshot.Wait) {
	if w.Pointer == "" {
		w.Pointer = c.Pointer
	}
	w.Arm = c.Step
	undo := Command{Target: c.Target, Input: c.Input, Pointer: c.Pointer, Key: c.Key, Compensates: true}
	if undo.Key == "" { // recorded before there were keys
		undo.Key = t.key(1, place{pointer: c.Pointer + "/compensate", visit: "step" + itoa(c.Step)}, undo.digest())
	}
	t.Perform(undo, w)
}

// forget drops a compensation that is done with.
func (t *Turn) forget(step int) {
	t.Snap.Compensations = slices.DeleteFunc(slices.Clone(t.Snap.Compensations), func(c snapshot.Compensation) bool { return c.Step == step })
}

// undone takes the result of a compensation. One that failed for good faults
// the instance with an error that names it; the rest is kept.
func (t *Turn) undone(w snapshot.Wait, res Result) {
	if res.Error != nil {
		t.Fault(*uncompensated(w.Pointer, *res.Error))
		return
	}
	t.forget(w.Arm)
	t.undoNext()
}

func uncompensated(pointer string, e snapshot.Error) *snapshot.Error {
	e.Detail = strings.TrimSuffix(fmt.Sprintf("compensation of %s failed: %s", pointer, e.Detail), ": ")
	e.Instance = pointer
	return &e
}

// undoAgain is what an operator's retry does with a compensation that failed,
// and undoWithout what a skip does.
func (t *Turn) undoAgain() {
	t.Snap.Error = &t.Snap.Undo.Error
	t.undoNext()
}

func (t *Turn) undoWithout() {
	if last := len(t.Snap.Compensations) - 1; last >= 0 {
		t.forget(t.Snap.Compensations[last].Step)
	}
	t.undoAgain()
}

// tried returns the frame of the try in whose catch the task n is.
func (r *run) tried(n *Node) (*Node, *snapshot.Frame) {
	for n.parent != nil {
		if up := n.parent; up.Kind == KindTry && up.Catch.Body == n {
			for _, f := range slices.Backward(line(r.t.Snap, r.b)) {
				if f.Pointer == up.Pointer {
					return up, f
				}
			}
		}
		n = n.parent
	}
	return nil, nil
}

// compensateTried compensates, one step after the other, what the body of the
// try around the catch has completed.
func (r *run) compensateTried(n *Node) (rests bool, err error) {
	try, f := r.tried(n)
	if f == nil {
		return false, fmt.Errorf("engine: %s: %s is in no catch", r.t.Snap.InstanceID, n.Pointer)
	}
	underWay := map[int]bool{} // by another branch of the catch
	for _, w := range r.t.Snap.Waits {
		if at := r.p.nodes[w.Pointer]; at != nil && at.Kind == KindUndo {
			underWay[w.Arm] = true
		}
	}
	for _, c := range slices.Backward(r.t.Snap.Compensations) {
		if !underWay[c.Step] && c.Step > f.Mark && strings.HasPrefix(c.Pointer, try.Body.Pointer+"/") {
			r.t.compensate(c, snapshot.Wait{Branch: r.b.ID, Pointer: n.Pointer})
			return true, nil
		}
	}
	return false, r.complete(n, r.data, n.Then)
}

// compensated takes the result of a compensation in a catch.
func (r *run) compensated(n *Node, w snapshot.Wait, res Result) (rests bool, err error) {
	at := n.Pointer
	for _, c := range r.t.Snap.Compensations {
		if c.Step != w.Arm {
			continue
		}
		if at = c.Pointer; res.Error == nil {
			r.t.undoneAt(c)
		}
	}
	if res.Error != nil {
		e := uncompensated(at, *res.Error)
		e.Instance = n.Pointer
		return false, &raised{*e}
	}
	r.t.forget(w.Arm)
	return r.compensateTried(n)
}

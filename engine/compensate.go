package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Undo begins to compensate what the instance has recorded, the last step
// first, after an error that nobody caught: the instance is faulted with it when
// that is done. Until then the definition is not asked.
func (t *Turn) Undo(e snapshot.Error) {
	t.Withdraw(TaskCancelled, func(snapshot.Wait) bool { return true })
	t.Snap.Error, t.Snap.Undo = &e, &snapshot.Undo{Error: e}
	data, _ := json.Marshal(map[string]any{"error": e, "steps": len(t.Snap.Compensations)})
	t.Append(Entry{Kind: KindEvent, Dir: Out, Type: EntryUndo, Data: data, Meta: Meta{Pointer: e.Instance}})
	t.compensateNext()
}

// compensateNext sends the command that compensates the step completed last, or
// faults the instance when none is left.
func (t *Turn) compensateNext() {
	s := t.Snap
	if len(s.Compensations) == 0 {
		s.Undo = &snapshot.Undo{Error: s.Undo.Error, Done: true}
		t.Fault(s.Undo.Error)
		return
	}
	c := s.Compensations[len(s.Compensations)-1]
	t.Compensate(c, snapshot.Wait{Pointer: c.Pointer})
}

// Compensate sends the command of one compensation, and adds the wait for its
// result, whose arm is the compensation's step.
func (t *Turn) Compensate(c snapshot.Compensation, w snapshot.Wait) {
	w.Arm = c.Step
	undo := Command{Target: c.Target, Input: c.Input, Pointer: c.Pointer, Key: c.Key, Compensates: true}
	if undo.Key == "" { // recorded before there were keys
		undo.Key = t.key(1, Effect{Pointer: c.Pointer + "/compensate", Visit: "step" + strconv.Itoa(c.Step)}, undo.digest())
	}
	t.Perform(undo, w)
}

// Compensated takes the result of a compensation, and forgets it: a retry that
// runs its task again makes another effect. One that failed for good is kept,
// and the error names it.
func (t *Turn) Compensated(w snapshot.Wait, res Result) *snapshot.Error {
	i := slices.IndexFunc(t.Snap.Compensations, func(c snapshot.Compensation) bool { return c.Step == w.Arm })
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
		t.compensatedAt(t.Snap.Compensations[i])
		t.Snap.Compensations = slices.Delete(slices.Clone(t.Snap.Compensations), i, i+1)
	}
	return nil
}

// compensated goes on with what [Turn.Undo] began.
func (t *Turn) compensated(w snapshot.Wait, res Result) {
	if e := t.Compensated(w, res); e != nil {
		t.Fault(*e)
		return
	}
	t.compensateNext()
}

// recover has an operator's retry or skip go on: with the compensation that
// failed, which a skip takes as done, or where the definition says.
func (t *Turn) recover(def Definition, op Operation, output json.RawMessage) error {
	s := t.Snap
	if s.Undo == nil {
		return def.Recover(t, op, output)
	}
	if last := len(s.Compensations) - 1; op == Skip && last >= 0 {
		s.Compensations = slices.Delete(slices.Clone(s.Compensations), last, last+1)
	}
	s.Error = &s.Undo.Error
	t.compensateNext()
	return nil
}

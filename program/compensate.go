package program

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/compensate"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// MaxCompensations bounds the compensations that an instance records. A task
// that has one and would begin beyond it raises an error instead.
const MaxCompensations = 1_000

// compensable raises an error when there is no room for what the task n would
// record at its end: an effect that cannot be compensated is not begun.
func (r undoing) compensable(n *Node) error {
	if n.Compensate != nil && len(r.t.Snap.Compensations) >= MaxCompensations {
		return raise(engine.ErrRuntime, 500, "Limit exceeded", fmt.Sprintf("%d compensations are recorded", MaxCompensations))
	}
	return nil
}

// record notes what undoes the task n, which is completing: the data is its
// output, as the next task sees it.
func (r undoing) record(n *Node, in *scope) error {
	if n.Compensate == nil {
		return nil
	}
	out := r.data
	in.out = &out
	with, err := r.evals.eval(n.Compensate.With, in)
	if err != nil {
		return err
	}
	raw, err := with.Raw(r.t.In.Limits.Expression.Bytes)
	if err != nil {
		return err
	}
	s := r.t.Snap
	frames := line(s, r.b) // with the task's own, which is no loop around it
	at := engine.Effect{Pointer: n.Pointer, Visit: r.p.visit(frames[:len(frames)-1])}
	c := engine.Command{Target: n.Compensate.Target, Input: raw, Compensates: true}
	key := r.t.Effects.Key(at, &c)
	s.LastStep++
	done := snapshot.Compensation{Step: s.LastStep, Pointer: n.Pointer, Target: c.Target, Input: raw, Key: key, Visit: at.Visit}
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

// tried returns the frame of the try in whose catch the task n is.
func (r undoing) tried(n *Node) (*Node, *snapshot.Frame) {
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
func (r undoing) compensateTried(n *Node) (rests bool, err error) {
	try, f := r.tried(n)
	if f == nil {
		return false, fmt.Errorf("program: %s: %s is in no catch", r.t.Snap.InstanceID, n.Pointer)
	}
	underWay := map[int]bool{} // by another branch of the catch
	for _, w := range r.t.Snap.Waits {
		if at := r.p.nodes[w.Pointer]; at != nil && at.Kind == KindCompensate {
			underWay[w.Arm] = true
		}
	}
	for _, c := range slices.Backward(r.t.Snap.Compensations) {
		if !underWay[c.Step] && c.Step > f.Mark && strings.HasPrefix(c.Pointer, try.Body.Pointer+"/") {
			compensate.Send(r.t, c, snapshot.Wait{Branch: r.b.ID, Pointer: n.Pointer})
			return true, nil
		}
	}
	return false, r.complete(n, r.data, n.Then)
}

// compensated takes the result of a compensation in a catch.
func (r undoing) compensated(n *Node, w snapshot.Wait, res engine.Result) (rests bool, err error) {
	if e := compensate.Done(r.t, w, res); e != nil {
		e.Instance = n.Pointer
		return false, &raised{*e}
	}
	return r.compensateTried(n)
}

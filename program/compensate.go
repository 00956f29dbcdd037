package program

import (
	"encoding/json"
	"fmt"
	"maps"
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

// arguments evaluates what the compensation of n is called with: on the task's
// output, or on null while it has none. $key is the key of the task's command.
func (r undoing) arguments(n *Node, data value, in scope, key string) (json.RawMessage, error) {
	in.vars = maps.Clone(in.vars)
	if in.vars == nil {
		in.vars = map[string]json.RawMessage{}
	}
	in.vars["key"] = json.RawMessage("null")
	if key != "" {
		raw, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		in.vars["key"] = raw
	}
	v, err := r.evals.evalOn(n.Compensate.With, &data, &in)
	if err != nil {
		return nil, err
	}
	made := anyValue(v)
	return made.Raw(r.t.In.Limits.Expression.Bytes)
}

// fill gives a compensation its arguments and its key, which no other has.
func (r undoing) fill(n *Node, c *snapshot.Compensation, input json.RawMessage) {
	c.Target, c.Input, c.Lacks = n.Compensate.Target, input, ""
	command := engine.Command{Target: c.Target, Input: input, Compensates: true}
	at := engine.Effect{Pointer: c.Pointer, Visit: c.Visit}
	c.Key = r.t.Effects.Key(at, &command)
	for _, other := range r.t.Snap.Compensations {
		if c.Effect != "" && other.Effect != "" && other.Key == c.Key && other.Step != c.Step { // of another request of the task
			at.Arm = c.Step
			c.Key = r.t.Effects.Key(at, &command)
			break
		}
	}
}

// sent notes what undoes the task n before its command is sent: should nobody ever
// hear what became of it, it is undone, too. What it is undone with is known of its
// input and its key; see record.
func (r undoing) sent(n *Node, in *scope, visit, key string) {
	if n.Compensate == nil {
		return
	}
	s := r.t.Snap
	s.LastStep++
	for i := range s.Compensations {
		if s.Compensations[i].Effect == key { // a retry sends it again: it keeps its place, and belongs to this run of the try around it
			s.Compensations = slices.Clone(s.Compensations)
			c := &s.Compensations[i]
			c.Step, c.Open, c.Unknown = s.LastStep, true, true
			return
		}
	}
	c := snapshot.Compensation{Step: s.LastStep, Pointer: n.Pointer, Target: n.Compensate.Target, Visit: visit, Effect: key, Open: true}
	if input, err := r.arguments(n, rawValue(json.RawMessage("null")), *in, key); err == nil {
		r.fill(n, &c, input)
	} else {
		c.Lacks = err.Error()
	}
	s.Compensations = append(slices.Clip(s.Compensations), c)
}

// answered forgets what undoes the task n when the outside is known to have refused
// what it was asked for.
func (r undoing) answered(n *Node, w snapshot.Wait, res engine.Result) {
	if n.Compensate == nil || res.Error == nil || res.Unknown || w.Effect == "" {
		return
	}
	s := r.t.Snap
	s.Compensations = slices.DeleteFunc(slices.Clone(s.Compensations), func(c snapshot.Compensation) bool {
		return c.Effect == w.Effect && c.Open && !c.Unknown
	})
	if len(s.Compensations) == 0 {
		s.Compensations = nil
	}
}

// record notes what undoes the task n, which is completing: the data is its
// output, as the next task sees it.
func (r undoing) record(n *Node, in *scope) error {
	if n.Compensate == nil {
		return nil
	}
	out, s := r.data, r.t.Snap
	in.out = &out
	if n.Kind == KindRun { // it takes the place of what the child has recorded
		s.Compensations = slices.DeleteFunc(slices.Clone(s.Compensations), func(c snapshot.Compensation) bool {
			return c.Pointer == n.Pointer && !strings.HasPrefix(c.Key, s.Incarnation+"/")
		})
	}
	frames := line(s, r.b) // with the task's own, which is no loop around it
	c := snapshot.Compensation{Pointer: n.Pointer, Visit: r.p.visit(frames[:len(frames)-1])}
	sent := -1
	for i, open := range s.Compensations {
		if open.Open && open.Pointer == n.Pointer && open.Visit == c.Visit && open.Step > c.Step {
			c, sent = open, i
		}
	}
	input, err := r.arguments(n, out, *in, c.Effect)
	if err != nil {
		return err
	}
	if c.Open, c.Unknown = false, false; sent < 0 {
		s.LastStep++
		c.Step = s.LastStep
	}
	r.fill(n, &c, input)
	// A retry has run the task again, which has done nothing more than before:
	// it keeps its place, and belongs to this run of the try around it.
	same := slices.IndexFunc(s.Compensations, func(old snapshot.Compensation) bool { return old.Key == c.Key && old.Effect == "" })
	s.Compensations = slices.Clone(s.Compensations)
	switch {
	case sent >= 0:
		s.Compensations[sent] = c
		if same >= 0 { // recorded before effects were noted
			s.Compensations = slices.Delete(s.Compensations, same, same+1)
		}
	case same >= 0:
		s.Compensations[same] = c
	default:
		s.Compensations = append(s.Compensations, c)
	}
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
		if at := r.p.node(w.Pointer); at != nil && at.Kind == KindCompensate {
			underWay[w.Arm] = true
		}
	}
	for _, c := range slices.Backward(r.t.Snap.Compensations) {
		if !underWay[c.Step] && c.Step > f.Mark && strings.HasPrefix(c.Pointer, try.Body.Pointer+"/") {
			if e := compensate.Lacking(c); e != nil {
				e.Type, e.Instance = engine.ErrorBase+engine.ErrExpression, n.Pointer
				return false, &raised{*e}
			}
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

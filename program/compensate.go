package program

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/compensate"
	"github.com/aqueduct-engine/aqueduct/duration"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// MaxCompensations bounds the compensations that an instance records. A task
// that has one and would begin beyond it raises an error instead.
const MaxCompensations = 1_000

// asks are the expressions of what undoes a task: its arguments, within, timeout and
// key, any of which may be nil; none of nil.
func (n *Node) asks() []*jq.Template {
	switch {
	case n == nil:
		return nil
	case n.Kind == KindPerson:
		return []*jq.Template{n.Person.With, nil, n.Timeout, nil}
	case n.Kind == KindRun:
		return []*jq.Template{n.Run.Input, nil, n.Timeout, nil}
	}
	return []*jq.Template{n.Call.With, n.Call.Ack, n.Timeout, n.Call.Key}
}

// compensable raises an error when there is no room for what the task n would
// record, so many times: an effect that cannot be compensated is not begun.
func (r undoing) compensable(by *Node, times int) error {
	if by != nil && len(r.t.Snap.Compensations)+times > MaxCompensations {
		return raise(engine.ErrRuntime, 500, "Limit exceeded", fmt.Sprintf("more than %d compensations would be recorded", MaxCompensations))
	}
	return nil
}

// subject is a task, or one item of it, that something compensates.
type subject struct {
	n   *Node
	by  *Node // what compensates it
	arm int   // of a fan-out
}

// means evaluates what undoes a task: on its output, or on null while it has none. $key
// is the key of the task's command; the Key that is made is the author's own.
func (r undoing) means(u subject, data value, in scope, key string) (c snapshot.Compensation, err error) {
	made, err := r.arguments(u.by, data, in, key)
	if err != nil {
		return c, err
	}
	by, means := u.by, any(nil)
	if by.Call != nil && by.Call.Key != nil {
		if err := jsonv2.Unmarshal(made[3], &c.Key); err != nil || !engine.ValidKey(c.Key) {
			return c, raise(engine.ErrValidation, 400, "Invalid idempotency key",
				fmt.Sprintf("idempotencyKey gives %s, not a text of 1 to %d visible ASCII characters", made[3], engine.MaxOwnKeyBytes))
		}
	}
	limit := compensate.Limit{}
	if by.Timeout != nil {
		if limit.TimeoutNanos, err = r.span(made[2], "a compensation cannot be over after"); err != nil {
			return c, err
		}
	}
	switch {
	case by.Kind == KindRun:
		means = compensate.Run{Limit: limit, Definition: by.Run.Definition, Version: by.Run.Version, Input: made[0]}
	case by.Kind == KindPerson:
		ask := compensate.Ask{Limit: limit}
		if ask.Task, err = r.calls.task(made[0]); err != nil {
			return c, err
		}
		if !ask.Task.DueAt.IsZero() {
			ask.DueNanos = int64(ask.Task.DueAt.Sub(r.t.In.Now))
		}
		means = ask
	case by.Call.Ack != nil:
		d := compensate.Delivery{Limit: limit, Call: by.Call.Target, With: made[0]}
		if d.WithinNanos, err = r.span(made[1], "an acknowledgement cannot come within"); err != nil {
			return c, err
		}
		means = d
	default:
		c.Target, c.Input = by.Call.Target, made[0]
		return c, nil
	}
	if c.Target, c.Input, err = compensate.Targeted(means); err != nil {
		return c, raise(engine.ErrRuntime, 500, "Limit exceeded", err.Error())
	}
	return c, nil
}

// arguments evaluates the expressions of what undoes a task; null where there is none.
func (r undoing) arguments(by *Node, data value, in scope, key string) (made [4]json.RawMessage, err error) {
	in.vars = maps.Clone(in.vars)
	if in.vars == nil {
		in.vars = map[string]json.RawMessage{}
	}
	in.vars["key"] = json.RawMessage("null")
	if key != "" {
		if in.vars["key"], err = json.Marshal(key); err != nil {
			return made, err
		}
	}
	for i, t := range by.asks() {
		if made[i] = json.RawMessage("null"); t == nil {
			continue
		}
		v, err := r.evals.evalOn(t, &data, &in)
		if err != nil {
			return made, err
		}
		whole := anyValue(v)
		if made[i], err = whole.Raw(r.t.In.Limits.Expression.Bytes); err != nil {
			return made, err
		}
	}
	return made, nil
}

// span is a duration that an expression has made.
func (r undoing) span(raw json.RawMessage, wrong string) (int64, error) {
	var text string
	if err := jsonv2.Unmarshal(raw, &text); err != nil {
		return 0, raise(engine.ErrExpression, 400, "Invalid duration", fmt.Sprintf("%s %s", wrong, raw))
	}
	until, err := duration.After(r.t.In.Now, text)
	if err != nil || !until.After(r.t.In.Now) {
		return 0, raise(engine.ErrExpression, 400, "Invalid duration", wrong+" "+text)
	}
	return int64(until.Sub(r.t.In.Now)), nil
}

// fill gives a compensation its target, its arguments and its key, which no other has, unless it is the author's.
func (r undoing) fill(u subject, c *snapshot.Compensation, made snapshot.Compensation) {
	c.Target, c.Input, c.Lacks = made.Target, made.Input, ""
	if c.Key = made.Key; c.Key != "" {
		return
	}
	command := engine.Command{Target: c.Target, Input: c.Input, Compensates: true}
	at := engine.Effect{Pointer: c.Pointer, Visit: c.Visit, Arm: u.arm}
	c.Key = r.t.Effects.Key(at, &command)
	for _, other := range r.t.Snap.Compensations {
		if c.Effect != "" && other.Effect != "" && other.Key == c.Key && other.Step != c.Step { // of another request of the task
			at.Visit += "." + itoa(c.Step)
			c.Key = r.t.Effects.Key(at, &command)
			break
		}
	}
}

// sent notes what undoes a task before its command is sent: should nobody ever
// hear what became of it, it is undone, too. What it is undone with is known of its
// input and its key; see record.
func (r undoing) sent(u subject, in *scope, visit, key string) {
	if u.by == nil {
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
	c := snapshot.Compensation{Step: s.LastStep, Pointer: u.n.Pointer, Target: u.by.target(), Visit: visit, Effect: key, Open: true}
	if made, err := r.means(u, rawValue(json.RawMessage("null")), *in, key); err == nil {
		r.fill(u, &c, made)
	} else if e, ok := asRaised(err); ok {
		c.Lacks = e.e.Detail
	} else {
		c.Lacks = err.Error()
	}
	s.Compensations = append(slices.Clip(s.Compensations), c)
}

// target is that of what undoes a task, before its arguments are known.
func (n *Node) target() string {
	switch {
	case n.Kind == KindPerson:
		return compensate.TargetPerson
	case n.Kind == KindRun:
		return compensate.TargetRun
	case n.Call.Ack != nil:
		return compensate.TargetAcknowledged
	}
	return n.Call.Target
}

// answered forgets what undoes a command when the outside is known to have refused
// what it was asked for: it has said that it has done nothing.
func (r undoing) answered(by *Node, w snapshot.Wait, res engine.Result) {
	if by != nil && res.Error != nil && !res.Unknown && !res.Open {
		compensate.Refused(r.t.Snap, w.Effect)
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
			return c.Pointer == n.Pointer && c.Step > r.w.since && !strings.HasPrefix(c.Key, s.Incarnation+"/")
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
	u := subject{n: n, by: n.Compensate}
	made, err := r.means(u, out, *in, c.Effect)
	if err != nil && sent >= 0 { // it is done
		s.Compensations = slices.Clone(s.Compensations)
		s.Compensations[sent].Open, s.Compensations[sent].Unknown = false, false
	}
	if err != nil {
		return err
	}
	if c.Open, c.Unknown = false, false; sent < 0 {
		s.LastStep++
		c.Step = s.LastStep
	}
	r.fill(u, &c, made)
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

// recordItem notes what undoes one item of the fan-out n, whose output has come.
func (r undoing) recordItem(n *Node, w snapshot.Wait, item, output json.RawMessage) error {
	s := r.t.Snap
	i := slices.IndexFunc(s.Compensations, func(c snapshot.Compensation) bool { return c.Effect == w.Effect })
	if n.Call.Compensate == nil || i < 0 {
		return nil
	}
	out, u := rawValue(output), subject{n: n, by: n.Call.Compensate, arm: w.Arm}
	in := about(n, r.top())
	in.out, in.vars = &out, map[string]json.RawMessage{n.Call.Each: item}
	s.Compensations = slices.Clone(s.Compensations)
	c := &s.Compensations[i]
	c.Open, c.Unknown = false, false
	made, err := r.means(u, out, in, w.Effect)
	if err != nil {
		return err
	}
	r.fill(u, c, made)
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
		if w.Left > f.Mark && strings.HasPrefix(w.Pointer, try.Body.Pointer+"/") {
			return true, nil // a child compensates first, or says what undoes it; see settled
		}
		if at := r.p.node(w.Pointer); at != nil && at.Kind == KindCompensate {
			underWay[w.Arm] = true
		}
	}
	for _, c := range slices.Backward(r.t.Snap.Compensations) {
		if !underWay[c.Step] && c.Step > f.Mark && strings.HasPrefix(c.Pointer, try.Body.Pointer+"/") {
			if compensate.Crowded(r.t, c) {
				r.t.Await(snapshot.Wait{Kind: snapshot.WaitNext, Branch: r.b.ID, Pointer: n.Pointer})
				return true, nil
			}
			if e := compensate.Send(r.t, c, snapshot.Wait{Branch: r.b.ID, Pointer: n.Pointer}); e != nil {
				e.Type, e.Instance = engine.ErrorBase+engine.ErrExpression, n.Pointer
				return false, &raised{e: *e}
			}
			return true, nil
		}
	}
	return false, r.complete(n, r.data, n.Then)
}

// compensated takes the result of a compensation in a catch.
func (r undoing) compensated(n *Node, w snapshot.Wait, res engine.Result) (rests bool, err error) {
	if e := compensate.Done(r.t, w, res); e != nil {
		e.Instance = n.Pointer
		return false, &raised{e: *e}
	}
	return r.compensateTried(n)
}

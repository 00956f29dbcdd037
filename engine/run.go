package engine

import (
	"encoding/json"
	"fmt"

	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// run is the interpreter at work on one branch of an instance.
type run struct {
	p     *Program
	t     *Turn
	b     *snapshot.Branch
	data  value // what the next task gets
	input value // $input of the task being evaluated
	node  *Node // the task being evaluated, for $task
	began snapshot.Frame
	out   *value // $output, where there is one
}

// Ref names the definition.
func (p *Program) Ref() snapshot.Definition { return p.ID }

// Begin makes the root branch and runs it.
func (p *Program) Begin(t *Turn, input json.RawMessage) error {
	if t.Snap.Schedule != nil {
		return p.scheduled(t)
	}
	t.Snap.Branches = []snapshot.Branch{{Frames: []snapshot.Frame{{Pointer: p.Root.Pointer}}}}
	r := p.branch(t, 0)
	r.data, r.input = rawValue(input), rawValue(input)
	if err := r.start(); err != nil {
		return r.settle(p.Root, err)
	}
	return r.advance()
}

// start applies the workflow's own input filter and timeout.
func (r *run) start() error {
	if r.p.Timeout != nil {
		if err := r.deadline(r.p.Root, r.p.Timeout, &r.b.Frames[0]); err != nil {
			return err
		}
	}
	if r.p.Input != nil {
		v, err := r.eval(r.p.Input)
		if err != nil {
			return err
		}
		r.data = v
	}
	return nil
}

// branch prepares work on a branch.
func (p *Program) branch(t *Turn, id int) *run {
	b := t.Snap.Branch(id)
	if b == nil {
		return nil
	}
	data := b.Data
	if data == nil {
		data = t.Snap.State.Input
	}
	return &run{p: p, t: t, b: b, data: rawValue(data)}
}

// top returns the innermost frame.
func (r *run) top() *snapshot.Frame { return &r.b.Frames[len(r.b.Frames)-1] }

func (r *run) push(f snapshot.Frame) { r.b.Frames = append(r.b.Frames, f) }
func (r *run) pop()                  { r.b.Frames = r.b.Frames[:len(r.b.Frames)-1] }

// advance runs tasks until the branch waits or the workflow ends.
func (r *run) advance() error {
	for r.b != nil {
		f := r.top()
		n := r.p.nodes[f.Pointer]
		if n == nil {
			return fmt.Errorf("engine: %s: no task at %s in %s", r.t.Snap.InstanceID, f.Pointer, r.p.ID.Digest)
		}
		var waits bool
		var err error
		switch n.Kind {
		case KindList:
			if f.Next < len(n.List) {
				n = n.List[f.Next]
				waits, err = r.enter(n)
			} else {
				err = r.listEnd(n)
			}
		case KindFor:
			waits, err = r.iterate(n)
		default:
			return fmt.Errorf("engine: %s: the %s at %s is not waiting", r.t.Snap.InstanceID, n.Kind, n.Pointer)
		}
		if err != nil {
			if err = r.settle(n, err); err != nil {
				return err
			}
			continue
		}
		if waits {
			return r.save()
		}
	}
	return nil
}

// save puts the current data back into the branch.
func (r *run) save() error {
	raw, err := r.data.Raw(snapshot.MaxBytes)
	if err != nil {
		return err
	}
	if string(raw) == string(r.t.Snap.State.Input) {
		raw = nil // absent = the instance's input, so that it is stored once
	}
	r.b.Data = raw
	return nil
}

// enter begins the task n, the next of the list on top; it reports whether the
// branch now waits.
func (r *run) enter(n *Node) (waits bool, err error) {
	if !r.t.Step(n.Pointer) {
		r.t.Await(snapshot.Wait{Kind: snapshot.WaitNext, Branch: r.b.ID, Pointer: r.top().Pointer})
		return true, nil
	}
	r.node, r.input, r.out = n, r.data, nil
	r.began = snapshot.Frame{Pointer: n.Pointer, StartedAt: r.t.In.Now}
	if n.If != nil {
		v, err := r.evalAny(n.If)
		if err != nil {
			return false, err
		}
		if !jq.Truthy(v) {
			r.top().Next++
			return false, nil
		}
	}
	f := snapshot.Frame{Pointer: n.Pointer}
	if n.keepsRaw() {
		if f.Raw, err = r.data.Raw(snapshot.MaxBytes); err != nil {
			return false, err
		}
		if n.Input != nil {
			filtered, err := r.eval(n.Input)
			if err != nil {
				return false, err
			}
			r.data, r.input = filtered, filtered
		}
	}
	if n.keepsInput() {
		if f.Input, err = r.data.Raw(snapshot.MaxBytes); err != nil {
			return false, err
		}
		f.StartedAt = r.t.In.Now
	}
	if n.Timeout != nil {
		if err := r.deadline(n, n.Timeout, &f); err != nil {
			return false, err
		}
	}
	r.push(f)
	return r.body(n)
}

// body runs what is particular to a task. Its frame is on top.
func (r *run) body(n *Node) (waits bool, err error) {
	switch n.Kind {
	case KindSet:
		v, err := r.eval(n.Set)
		if err != nil {
			return false, err
		}
		return false, r.complete(n, v, n.Then)
	case KindSwitch:
		return false, r.choose(n)
	case KindDo, KindTry:
		r.push(snapshot.Frame{Pointer: n.Body.Pointer})
		return false, nil
	case KindFor:
		return false, r.collect(n)
	case KindRaise:
		return false, r.raise(n)
	case KindWait:
		return true, r.wait(n)
	case KindListen:
		return r.listen(n)
	case KindCall:
		return true, r.call(n)
	case KindEach:
		return r.each(n)
	case KindPerson:
		return true, r.person(n)
	case KindEmit:
		return false, r.emit(n)
	case KindRun:
		return r.child(n)
	}
	return false, fmt.Errorf("engine: task kind %q at %s", n.Kind, n.Pointer)
}

// complete ends the task on top with its raw output and follows flow.
func (r *run) complete(n *Node, out value, flow Flow) error {
	f := *r.top()
	r.node, r.began = n, f
	if f.Input != nil {
		r.input = rawValue(f.Input)
	}
	before := r.data
	if err := r.publish(n, out); err != nil {
		r.data = before // a repetition starts from what the task was given
		return err
	}
	r.pop()
	r.lift(f)
	return r.follow(flow)
}

// publish makes a task's raw output the branch's data, by way of its output
// and export filters.
func (r *run) publish(n *Node, out value) error {
	defer func() { r.out = nil }()
	r.data = out
	if n.Output != nil {
		v, err := r.eval(n.Output)
		if err != nil {
			return err
		}
		r.data = v
	}
	if n.Export == nil {
		return nil
	}
	out = r.data
	r.out = &out
	ctx, err := r.eval(n.Export)
	if err != nil {
		return err
	}
	raw, err := ctx.Raw(snapshot.MaxBytes)
	if err == nil {
		r.t.Snap.State.Context = raw
	}
	return err
}

// lift removes the deadline of a frame that has ended.
func (r *run) lift(f snapshot.Frame) {
	if f.Deadline != "" {
		r.t.Withdraw(TaskCancelled, func(w snapshot.Wait) bool { return w.Token == f.Deadline })
	}
}

// follow applies a flow directive to the list on top.
func (r *run) follow(flow Flow) error {
	f := r.top()
	list := r.p.nodes[f.Pointer]
	switch flow.Directive {
	case FlowContinue:
		f.Next++
	case FlowExit:
		f.Next = len(list.List)
	case FlowEnd:
		return r.end()
	case FlowTo:
		f.Next = list.find(flow.Target)
	}
	return nil
}

// listEnd ends the list on top and tells the task around it.
func (r *run) listEnd(list *Node) error {
	if list.parent == nil {
		return r.end()
	}
	r.pop()
	n := list.parent
	switch n.Kind {
	case KindFor:
		r.top().Next++
		return nil
	case KindTry:
		if r.top().Phase == phaseCatch && n.Catch.Then.Directive != FlowContinue {
			return r.complete(n, r.data, n.Catch.Then)
		}
	}
	return r.complete(n, r.data, n.Then)
}

// phaseCatch marks the frame of a try that has caught an error.
const phaseCatch = "catch"

// end completes the workflow with the current data.
func (r *run) end() error {
	r.node, r.input = r.p.Root, rawValue(r.t.Snap.State.Input)
	if r.p.Output != nil {
		v, err := r.eval(r.p.Output)
		if err != nil {
			return err
		}
		r.data = v
	}
	raw, err := r.data.Raw(snapshot.MaxBytes)
	if err != nil {
		return err
	}
	r.t.Complete(raw)
	r.b = nil
	return nil
}

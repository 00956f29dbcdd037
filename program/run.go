package program

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Ref names the definition.
func (p *Program) Ref() snapshot.Definition { return p.ID }

// GiveUp is what the root list says.
func (p *Program) GiveUp() time.Duration { return p.Root.GiveUp }

// phaseStart marks the root frame of a workflow that has not yet taken its input.
const phaseStart = "start"

// start applies the workflow's own timeout and input filter.
func (r *run) start() error {
	in, root := scope{input: r.data}, r.top()
	root.Phase = phaseStart // until then an operator's retry begins here
	if r.p.Timeout != nil {
		if err := r.waits.deadline(r.p.Root, r.p.Timeout, root, &in); err != nil {
			return err
		}
	}
	return r.evals.begin(&in)
}

// begin takes the input of the workflow.
func (r evals) begin(in *scope) error {
	if err := r.evals.fits(r.p.Schemas.Input, r.data, "input of the workflow"); err != nil {
		return err
	}
	if r.p.Input != nil {
		v, err := r.evals.eval(r.p.Input, in)
		if err != nil {
			return err
		}
		r.data = v
	}
	r.top().Phase = ""
	return nil
}

// enter begins the task n, the next of the list on top; it reports whether the
// branch now waits.
func (r *run) enter(n *Node) (waits bool, err error) {
	if r.crowded(n) || !r.t.Step(n.Pointer) {
		r.t.Await(snapshot.Wait{Kind: snapshot.WaitNext, Branch: r.b.ID, Pointer: r.top().Pointer})
		return true, nil
	}
	in := scope{node: n, input: r.data, since: r.t.In.Now}
	if n.If != nil {
		v, err := r.evals.evalAny(n.If, &in)
		if err != nil {
			r.w.tell(engine.TaskCreatedEvent, n.Pointer, nil)
			return false, err
		}
		if !jq.Truthy(v) {
			r.top().Next++
			r.top().Epoch = 0
			return false, nil
		}
	}
	again, before := r.w.reached(n), r.data
	f, err := r.evals.frame(n, &in)
	if err != nil {
		r.data = before // a repetition starts from what the task was given
		return false, err
	}
	if !again {
		r.w.tell(engine.TaskStartedEvent, n.Pointer, nil)
	}
	if n.Policy != "" {
		r.t.Snap.Definition.Policy = n.Policy
	}
	r.push(f)
	return r.body(n, &in)
}

// frame makes the frame of the task n, and the branch's data its input.
func (r evals) frame(n *Node, in *scope) (f snapshot.Frame, err error) {
	if err := r.evals.fits(n.Schemas.Input, r.data, "input"); err != nil {
		return f, err
	}
	f.Pointer = n.Pointer
	if n.keepsRaw() && (n.Input != nil || !n.keepsInput()) { // else its input is the same
		if f.Raw, err = r.data.Raw(snapshot.MaxBytes); err != nil {
			return f, err
		}
		if n.Input != nil {
			filtered, err := r.evals.eval(n.Input, in)
			if err != nil {
				return f, err
			}
			r.data, in.input, in.raw = filtered, filtered, f.Raw
		}
	}
	if n.keepsInput() {
		if f.Input, err = r.data.Raw(snapshot.MaxBytes); err != nil {
			return f, err
		}
		f.StartedAt = r.t.In.Now
	}
	if n.Timeout != nil {
		if err := r.waits.deadline(n, n.Timeout, &f, in); err != nil {
			return f, err
		}
	}
	if n.Kind == KindTry {
		f.Mark = r.t.Snap.LastStep
	}
	return f, r.undoing.compensable(n.Compensate, 1)
}

// MaxSteps bounds the steps of the application that are asked for between two results:
// they hold locks of the database, and an instance that wants more goes on in another
// turn.
const MaxSteps = 32

// crowded reports whether a task is a step of the application that is for another turn.
func (r *run) crowded(n *Node) bool {
	if n.Kind != KindCall || !engine.Inside(n.Call.Target) {
		return false
	}
	r.w.steps++
	return r.t.In.Crowded || r.w.steps > MaxSteps
}

// body runs what is particular to a task. Its frame is on top.
func (r *run) body(n *Node, in *scope) (waits bool, err error) {
	switch n.Kind {
	case KindSet:
		v, err := r.evals.eval(n.Set, in)
		if err != nil {
			return false, err
		}
		return false, r.complete(n, v, n.Then)
	case KindSwitch:
		return false, r.choose(n, in)
	case KindDo, KindTry:
		r.push(snapshot.Frame{Pointer: n.Body.Pointer})
		return false, nil
	case KindFor:
		return false, r.collect(n, in)
	case KindFork:
		return r.forks.fork(n)
	case KindRaise:
		return false, r.raise(n, in)
	case KindWait:
		return true, r.waits.wait(n, in)
	case KindListen:
		return r.listens.listen(n, in)
	case KindCall:
		return r.calls.call(n, in)
	case KindEach:
		return r.calls.each(n, in)
	case KindPerson:
		return true, r.calls.person(n, in)
	case KindCompensate:
		return r.undoing.compensateTried(n)
	case KindEmit:
		return false, r.calls.emit(n, in)
	case KindRun:
		return r.calls.child(n, in)
	case KindState:
		return r.states.arrive(n)
	}
	return false, fmt.Errorf("program: task kind %q at %s", n.Kind, n.Pointer)
}

// complete ends the task on top with its raw output and follows flow. What is made of
// the output is not inside the task: its variables are gone, and it catches no error.
func (r *run) complete(n *Node, out value, flow Flow) error {
	f := *r.top()
	if r.top().Vars = nil; n.Kind == KindTry {
		r.top().Phase = phaseCatch
	}
	in := about(n, &f)
	before := r.data
	if err := r.publish(n, out, &in); err != nil {
		r.data = before // a repetition starts from what the task was given
		return raisedAt(n.Pointer, err)
	}
	r.pop()
	r.lift(f)
	r.w.completed(n, f)
	return r.follow(flow)
}

// publish makes a task's raw output the branch's data, by way of its output
// and export filters.
func (r *run) publish(n *Node, out value, in *scope) error {
	r.data, in.made = out, out
	if err := r.shape(n.Output, n.Export, n.Schemas, in); err != nil {
		return err
	}
	return r.undoing.record(n, in)
}

// shape puts the data through an output filter and lets it be exported, each
// checked by its schema.
func (r *run) shape(output, export *jq.Template, schemas Schemas, in *scope) error {
	if output != nil {
		v, err := r.evals.eval(output, in)
		if err != nil {
			return err
		}
		r.data = v
	}
	if err := r.evals.fits(schemas.Output, r.data, "output"); err != nil {
		return err
	}
	if export == nil {
		return nil
	}
	out := r.data
	in.out = &out
	ctx, err := r.evals.eval(export, in)
	if err != nil {
		return err
	}
	raw, err := ctx.Raw(snapshot.MaxBytes)
	if err == nil {
		err = r.evals.fits(schemas.Export, ctx, "context")
	}
	if err == nil {
		r.t.Snap.State.Context = raw
	}
	return err
}

// lift removes the deadline of a frame that has ended.
func (r *run) lift(f snapshot.Frame) {
	if f.Deadline != "" {
		r.t.Withdraw(engine.TaskCancelled, func(w snapshot.Wait) bool { return w.Token == f.Deadline })
	}
}

// follow applies a flow directive to the list on top.
func (r *run) follow(flow Flow) error {
	f := r.top()
	if flow.Up { // without the output filter of the task around: it is left, not ended
		r.pop()
		r.lift(*r.top())
		r.pop()
		flow.Up = false
		return r.follow(flow)
	}
	list := r.p.node(f.Pointer)
	f.Epoch = 0 // what comes next begins now
	f.Attempt, f.FailedAt = 0, time.Time{}
	switch flow.Directive {
	case FlowContinue:
		f.Next++
	case FlowExit:
		f.Next = len(list.List)
	case FlowEnd:
		return r.end()
	case FlowTo:
		to := list.find(flow.Target)
		if to <= f.Next {
			f.Jumps++
		}
		f.Next = to
	}
	return nil
}

// listEnd ends the list on top and tells the task around it.
func (r *run) listEnd(list *Node) error {
	if list.parent == nil {
		return r.end()
	}
	r.lift(*r.top())
	r.pop()
	if r.p.node(r.top().Pointer).Kind == KindState {
		return nil // it goes on by itself
	}
	n := list.parent
	switch n.Kind {
	case KindFor:
		r.top().Next++
		return nil
	case KindListen:
		return r.listens.processed(n)
	case KindTry:
		if r.top().Phase == phaseCatch {
			return r.complete(n, r.data, n.caught())
		}
	}
	return r.complete(n, r.data, n.Then)
}

// phaseCatch marks the frame of a try that has caught an error.
const phaseCatch = "catch"

// end completes the workflow with the current data, which stay where what is made of
// them fails.
func (r *run) end() error {
	raw, err := r.evals.output()
	if e, ok := asRaised(err); ok {
		return &raised{e: e.e, ended: true}
	}
	if err != nil {
		return err
	}
	r.progress.ended()
	r.t.Complete(raw)
	return nil
}

// output is what the workflow makes of the current data.
func (r evals) output() (json.RawMessage, error) {
	out := r.data
	if r.p.Output != nil {
		v, err := r.evals.eval(r.p.Output, &scope{node: r.p.Root, input: rawValue(r.t.Snap.State.Input)})
		if err != nil {
			return nil, err
		}
		out = v
	}
	if err := r.evals.fits(r.p.Schemas.Output, out, "output of the workflow"); err != nil {
		return nil, err
	}
	return out.Raw(snapshot.MaxBytes)
}

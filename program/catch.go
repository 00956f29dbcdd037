package program

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/aqueduct-engine/aqueduct/compensate"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// entryCaught and entryRetry are the stream's records that a try has taken an
// error, and, with {attempt, dueAtUtc, error}, that it is to run again.
const (
	entryCaught = "ErrorCaught"
	entryRetry  = "RetryScheduled"
)

// settle turns an error at n into the workflow's next state: the innermost try
// around it that takes it goes on with its catch; when there is none, the
// instance is faulted. An error that leaves a branch ends the fork with all its
// branches, and is raised there. An error that is not the workflow's is
// returned.
func (r tries) settle(n *Node, err error) error {
	var u *undecided
	if errors.As(err, &u) {
		return r.halt(u)
	}
	raiser := n // until its end is told
	for {
		e, ok := asRaised(err)
		if !ok {
			return err
		}
		if e.e.Instance == "" {
			e.e.Instance = n.Pointer
		}
		if e.ended {
			root, err := r.forks.ended()
			if err != nil {
				return err
			}
			return root.tries.fault(e.e)
		}
		i, caught, catchErr := r.taker(e.e)
		if catchErr != nil {
			r.progress.failed(raiser, i+1, e.e)
			raiser = nil
			err = catchErr // the catch's own condition failed: that is the error now
			r.waits.unwind(i, engine.TaskCancelled)
			r.progress.failing(err)
			r.leave(engine.TaskCancelled)
			continue
		}
		r.progress.failed(raiser, i+1, e.e)
		raiser = nil
		if !caught {
			fork := r.forks.forked()
			if fork == nil {
				return r.fault(e.e)
			}
			if fork.Any {
				if others, err := r.forks.outlived(fork, e.e); others || err != nil {
					return err
				}
			}
			r.b.Frames = r.b.Frames[:1] // the others have failed
			if r.run, err = r.forks.up(fork); err != nil {
				return err
			}
			r.forks.prune(engine.TaskCancelled)
			r.progress.failing(e)
			r.leave(engine.TaskCancelled)
			n, err = fork, e
			continue
		}
		var what verdict
		if what, err = r.caught(i, e.e); err != nil {
			continue
		}
		switch what {
		case goesOn:
			r.w.goOn(r.run)
			return nil
		case retries:
			return r.save()
		}
		r.progress.failing(e)
		r.leave(engine.TaskCancelled)
		err = e
	}
}

// taker finds the innermost try that takes an error. On an error of a
// condition, i is the try that has it.
func (r tries) taker(e snapshot.Error) (i int, ok bool, err error) {
	for i = len(r.b.Frames) - 1; i >= 0; i-- {
		f := &r.b.Frames[i]
		n := r.p.node(f.Pointer)
		if n == nil || n.Kind != KindTry || f.Phase == phaseCatch {
			continue
		}
		ok, err := r.takes(n, i, e)
		if err != nil || ok {
			return i, ok, err
		}
	}
	return 0, false, nil
}

// takes reports whether the try n, whose frame is the ith, takes an error.
func (r tries) takes(n *Node, i int, e snapshot.Error) (bool, error) {
	f := &r.b.Frames[i]
	fields := map[string]any{"type": e.Type, "status": e.Status, "title": e.Title, "detail": e.Detail, "instance": e.Instance}
	raw, err := json.Marshal(e)
	if err != nil {
		return false, err
	}
	in, data := about(n, f), rawValue(f.Input)
	in.inside = len(r.b.Frames) - i
	in.vars = map[string]json.RawMessage{n.Catch.name(): raw}
	for name, t := range n.Catch.With {
		want, err := r.evals.evalOn(t, &data, &in)
		if err != nil {
			return false, err
		}
		if name == "type" && engine.SameType(text(want), e.Type) {
			continue
		}
		if text(want) != text(fields[name]) {
			return false, nil
		}
	}
	return r.passes(n.Catch.When, n.Catch.ExceptWhen, &data, &in)
}

func (c *Catch) name() string {
	if c.As == "" {
		return "error"
	}
	return c.As
}

// verdict is what a try does with an error that it takes.
type verdict int

const (
	goesOn  verdict = iota // its catch is done, or runs
	retries                // it waits to run again
	raises                 // it has retried enough, and has nothing else to do
)

// caught goes on in the catch of the try at frame i.
func (r tries) caught(i int, e snapshot.Error) (verdict, error) {
	r.waits.unwind(i, engine.TaskCancelled)
	f := r.top()
	n := r.p.node(f.Pointer)
	raw, err := json.Marshal(e)
	if err != nil {
		return goesOn, err
	}
	r.data = rawValue(f.Input)
	if n.Catch.Retry != nil {
		again, err := r.retry(n, e, raw)
		if again {
			return retries, nil
		}
		if err != nil {
			f.Phase = phaseCatch // an error of the policy goes outwards
			return goesOn, err
		}
	}
	return r.over(n, e, raw)
}

// over goes on in the catch of the try on top, which does not run again.
func (r tries) over(n *Node, e snapshot.Error, raw json.RawMessage) (verdict, error) {
	f := r.top()
	f.Phase = phaseCatch
	if n.Catch.Retry != nil && n.Catch.Body == nil {
		return raises, nil
	}
	r.t.Append(engine.Entry{Kind: engine.KindEvent, Dir: engine.Out, Type: entryCaught, Data: raw, Meta: engine.Meta{Pointer: e.Instance}})
	f.Vars = map[string]json.RawMessage{n.Catch.name(): raw}
	if n.Catch.Body != nil {
		r.push(snapshot.Frame{Pointer: n.Catch.Body.Pointer})
		return goesOn, nil
	}
	return goesOn, r.complete(n, r.data, n.caught())
}

// caught is the flow behind a try that has caught an error.
func (n *Node) caught() Flow {
	if n.Catch.Then != nil {
		return *n.Catch.Then
	}
	return n.Then
}

// leave ends the task on top without an output: what it asked for is
// withdrawn, and the branch's data is what the task was given.
func (r tries) leave(how engine.TaskEvent) {
	i := len(r.b.Frames) - 1
	f := r.b.Frames[i]
	r.waits.unwind(i, how)
	r.lift(f)
	r.restore(f)
	r.pop()
}

// restore makes the data what the task of a frame was given.
func (r tries) restore(f snapshot.Frame) {
	if f.Raw != nil {
		r.data = rawValue(f.Raw)
	} else if f.Input != nil {
		r.data = rawValue(f.Input)
	}
}

// fault stops the instance, or ends it once what it has done is compensated.
func (r tries) fault(e snapshot.Error) error {
	if err := r.rewind(); err != nil {
		return err
	}
	again, err := r.retryHook(e)
	if of, isRaised := asRaised(err); isRaised {
		if e = of.e; e.Instance == "" {
			e.Instance = r.top().Pointer
		}
	} else if again || err != nil {
		return err
	}
	compensate.All(r.t, e)
	return nil
}

// rewind takes the root branch back to where an operator's retry begins and
// what a skip passes over. The frames stay, up to the list whose next task is
// the one that failed, and its raw input becomes the branch's data. A fork is
// repeated as a whole: its branches are gone.
func (r tries) rewind() error {
	r.forks.prune(engine.TaskCancelled)
	for len(r.b.Frames) > 1 {
		top := r.top()
		if k := r.p.node(top.Pointer); k != nil && k.Kind == KindList {
			break
		}
		r.restore(*top)
		r.pop()
	}
	if err := r.save(); err != nil {
		return err
	}
	for i := range r.b.Frames {
		r.b.Frames[i].Deadline = ""
	}
	return nil
}

// Recover runs the failed task of a faulted instance again, or takes it as done.
func (p *Program) Recover(t *engine.Turn, op engine.Operation, output json.RawMessage) error {
	engine.Under(t, p.Policy)
	if compensate.Recover(t, op) {
		return nil
	}
	r, err := mended(p, t)
	if err != nil || r == nil {
		return err
	}
	f, list := r.top(), p.node(r.top().Pointer)
	begins := f.Phase == phaseStart
	switch {
	case op == engine.Skip:
		if p.Machine != nil && list == p.Root {
			return problem.New(problem.Conflict, "lifecycle.not-skippable", "instance %s failed at a state, which cannot be skipped", t.Snap.InstanceID).
				WithHint("retry it, or cancel it")
		}
		r.data, f.Phase = rawValue(orNull(output)), ""
		if !begins && f.Next < len(list.List) { // else it is in the place of the workflow's input
			t.Tell(engine.LifecycleEvent{Type: engine.TaskCompletedEvent, Task: list.List[f.Next].Pointer})
			f.Next, f.Epoch = f.Next+1, 0
		}
	case begins:
		if err := r.rest(p.Root, false, r.evals.begin(&scope{input: r.data})); err != nil {
			return err
		}
		return r.w.drive()
	}
	r.w.goOn(r)
	return r.w.drive()
}

// mended prepares a faulted instance for going on. The run is nil when it has
// faulted again, or gone on elsewhere, at once.
func mended(p *Program, t *engine.Turn) (*run, error) {
	w := &work{p: p, t: t}
	r := w.branch(0)
	t.Snap.Error = nil
	if err := r.tries.rewind(); err != nil { // one that FaultWith stopped stands where it stood
		return nil, err
	}
	r.top().Attempt, r.top().FailedAt = 0, time.Time{}
	r.progress.mending()
	if err := r.tries.again(); err != nil {
		return nil, err
	}
	if t.Snap.Status == snapshot.Faulted {
		return nil, nil
	}
	if len(w.ready) > 0 {
		return nil, w.drive()
	}
	return r, nil
}

// again gives the tasks around the failed one their timeouts anew, from now.
// When one cannot be given, its error has been settled.
func (r tries) again() error {
	for i := range r.b.Frames {
		f := &r.b.Frames[i]
		n := r.p.node(f.Pointer)
		if n == nil {
			continue
		}
		after := n.Timeout
		if i == 0 {
			after = r.p.Timeout
		}
		var err error
		now := r.data
		if after != nil {
			var in scope
			if !after.Constant() { // else it asks for no input, which may be no more
				in, err = r.evals.began(n, i)
				in.inside, r.data = len(r.b.Frames)-i, in.input
			}
			if err == nil {
				err = r.waits.deadline(n, after, f, &in)
			}
		}
		if n.Kind == KindListen && f.Phase != phaseDelivered && err == nil {
			err = r.listens.listenAgain(n, i)
		}
		if i > 0 && n.parent.Kind == KindTry && r.b.Frames[i-1].Attempt > 0 && n == n.parent.Body {
			in := about(n.parent, &r.b.Frames[i-1])
			if of := r.b.Frames[i-1].Results; len(of) == 1 {
				in = caughtAt(n.parent, &r.b.Frames[i-1], of[0])
			}
			in.inside = len(r.b.Frames) - i
			r.data = in.input
			err = r.attemptDeadline(n.parent, f, &in)
		}
		r.data = now
		if err != nil {
			return r.settle(n, err)
		}
	}
	return nil
}

// began is the scope in which the timeout of the task of a frame was evaluated when it
// began: on its own input, and not on what the tasks inside of it have come to.
func (r evals) began(n *Node, i int) (in scope, err error) {
	f := &r.b.Frames[i]
	in = about(n, f)
	switch {
	case i == 0:
		return scope{input: rawValue(r.t.Snap.State.Input)}, nil
	case f.Input != nil:
	case f.Raw == nil: // the data are its input still
		in.input = r.data
	case n.Input == nil:
		in.input = rawValue(f.Raw)
	default:
		raw := rawValue(f.Raw)
		var v any
		if v, err = r.evalOn(n.Input, &raw, &scope{node: n, input: raw, since: f.StartedAt, inside: len(r.b.Frames) - i}); err == nil {
			in.input = anyValue(v)
		}
	}
	return in, err
}

package program

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aqueduct-engine/aqueduct/compensate"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// work is what the branches of an instance do in one turn. They take turns,
// one task each, in the order in which they became ready; so the same signal
// always gives the same order, and no branch is ahead of another because it
// was declared first. All share the turn's budget of steps.
type work struct {
	p     *Program
	t     *engine.Turn
	ready []*run
	since int    // LastStep when the turn began
	steps int    // of the application that the turn was asked for
	again string // pointer of the task that an operator has retried, until the flow has come to it
}

// branch prepares work on a branch; nil when there is no such branch.
func (w *work) branch(id int) *run {
	b := w.t.Snap.Branch(id)
	if b == nil {
		return nil
	}
	return newRun(w.p, w.t, w, b, rawValue(stored(w.t.Snap, b)))
}

// stored is the data of a branch as its snapshot has it.
func stored(s *snapshot.Snapshot, b *snapshot.Branch) json.RawMessage {
	for b != nil && b.Data == nil && b.ID != 0 {
		b = s.Branch(b.Parent)
	}
	if b == nil || b.Data == nil {
		return s.State.Input
	}
	return b.Data
}

// goOn makes a branch ready to run.
func (w *work) goOn(r *run) { w.ready = append(w.ready, r) }

// drive runs until every branch waits, or the instance ends or faults.
func (w *work) drive() error {
	for len(w.ready) > 0 {
		if s := w.t.Snap.Status; s.Closed() || s == snapshot.Faulted {
			return nil
		}
		r := w.ready[0]
		if len(w.ready) > 1 {
			w.ready = w.ready[1:]
		} else {
			w.ready = w.ready[:0] // to be filled again
		}
		if r.gone() {
			continue
		}
		if err := r.tick(); err != nil {
			return err
		}
	}
	return nil
}

// run is the interpreter at work on one branch of an instance.
type run struct {
	p    *Program
	t    *engine.Turn
	w    *work
	b    *snapshot.Branch
	data value // what the next task gets
	told int   // the frames from this index on have their lifecycle's end; 0 = none has
	seen scope // of the expression that is evaluated just now: for lookup alone

	tries    tries
	listens  listens
	states   states
	forks    forks
	undoing  undoing
	calls    calls
	evals    evals
	progress progress
	waits    waits
}

func newRun(p *Program, t *engine.Turn, w *work, b *snapshot.Branch, data value) *run {
	r := &run{p: p, t: t, w: w, b: b, data: data}
	r.tries, r.listens, r.states, r.forks, r.undoing = tries{r}, listens{r}, states{r}, forks{r}, undoing{r}
	r.calls, r.evals, r.progress, r.waits = calls{r}, evals{r}, progress{r}, waits{r}
	return r
}

// What a run does, by what it is about; each part has the run.
type (
	tries    struct{ *run } // errors that are caught, and tried again
	listens  struct{ *run } // waits for events
	states   struct{ *run } // states of a lifecycle
	forks    struct{ *run } // branches that are made and joined
	undoing  struct{ *run } // what compensates completed tasks
	calls    struct{ *run } // what is asked of the outside, of people and of children
	evals    struct{ *run } // expressions
	progress struct{ *run } // events of what begins and ends
	waits    struct{ *run } // moments
)

// gone reports whether the branch has ended, by itself or with its fork.
func (r *run) gone() bool { return len(r.b.Frames) == 0 }

// top returns the innermost frame.
func (r *run) top() *snapshot.Frame { return &r.b.Frames[len(r.b.Frames)-1] }

func (r *run) push(f snapshot.Frame) { r.b.Frames, r.told = append(r.b.Frames, f), 0 }
func (r *run) pop()                  { r.b.Frames = r.b.Frames[:len(r.b.Frames)-1] }

// tick runs the next task of the branch.
func (r *run) tick() error {
	f := r.top()
	n := r.p.node(f.Pointer)
	if n == nil {
		return fmt.Errorf("program: %s: no task at %s in %s", r.t.Snap.InstanceID, f.Pointer, r.p.ID.Digest)
	}
	var rests bool
	var err error
	switch n.Kind {
	case KindList:
		if f.Next < len(n.List) {
			n = n.List[f.Next]
			rests, err = r.enter(n)
		} else {
			err = r.listEnd(n)
		}
	case KindArms:
		if f.Next == r.b.Arm {
			n = n.List[f.Next]
			rests, err = r.enter(n)
		} else {
			return r.forks.join(n.parent)
		}
	case KindFor:
		rests, err = r.iterate(n)
	case KindListen:
		rests, err = r.listens.process(n)
	case KindState:
		rests, err = r.states.hooked(n)
	default:
		return fmt.Errorf("program: %s: the %s at %s is not waiting", r.t.Snap.InstanceID, n.Kind, n.Pointer)
	}
	return r.rest(n, rests, err)
}

// rest ends a piece of a branch's work at n: with an error, at a wait, or
// ready for more.
func (r *run) rest(n *Node, rests bool, err error) error {
	switch {
	case err != nil:
		return r.tries.settle(n, err)
	case rests:
		return r.save()
	}
	r.w.goOn(r)
	return nil
}

// save puts the current data back into the branch.
func (r *run) save() error {
	raw, err := r.data.Raw(snapshot.MaxBytes)
	if err != nil {
		return err
	}
	r.b.Data = nil
	if !bytes.Equal(raw, stored(r.t.Snap, r.b)) { // so that what all branches begin with is stored once
		r.b.Data = raw
	}
	return nil
}

// Begin makes the root branch and runs it.
func (p *Program) Begin(t *engine.Turn, input json.RawMessage) error {
	engine.Under(t, p.Policy)
	t.Snap.Branches = []*snapshot.Branch{{Frames: []snapshot.Frame{{Pointer: p.Root.Pointer}}}}
	w := &work{p: p, t: t}
	r := w.branch(0)
	r.data = rawValue(input)
	if err := r.rest(p.Root, false, r.start()); err != nil {
		return err
	}
	return w.drive()
}

// Resume goes on where w waited.
func (p *Program) Resume(t *engine.Turn, wait snapshot.Wait, res engine.Result) error {
	engine.Under(t, p.Policy)
	w := &work{p: p, t: t, since: t.Snap.LastStep}
	if compensate.Resume(t, wait, res) {
		return nil
	}
	if wait.Left > 0 {
		return w.settled()
	}
	r := w.branch(wait.Branch)
	n := p.node(wait.Pointer)
	if r == nil || n == nil || r.gone() {
		return fmt.Errorf("program: %s: nothing waits at %s", t.Snap.InstanceID, wait.Pointer)
	}
	waits, err := r.waits.resumed(n, wait, res)
	if err := r.rest(n, waits, err); err != nil {
		return err
	}
	return w.drive()
}

// settled goes on with catches that compensate, and have waited for a child that was left.
func (w *work) settled() error {
	for _, b := range slices.Clone(w.t.Snap.Branches) {
		r := w.branch(b.ID)
		if r == nil || r.gone() || w.t.Snap.Status == snapshot.Faulted {
			continue
		}
		n := w.p.node(r.top().Pointer)
		if n == nil || n.Kind != KindCompensate || slices.ContainsFunc(w.t.Snap.Waits, func(x snapshot.Wait) bool {
			return x.Branch == b.ID && x.Pointer == n.Pointer && (x.Arm > 0 || x.Kind == snapshot.WaitNext)
		}) {
			continue
		}
		rests, err := r.undoing.compensateTried(n)
		if err := r.rest(n, rests, err); err != nil {
			return err
		}
	}
	return w.drive()
}

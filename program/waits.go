package program

import (
	"fmt"
	"slices"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// resumed applies a result to the task on top; it reports whether the branch
// still waits there.
func (r waits) resumed(n *Node, w snapshot.Wait, res engine.Result) (waits bool, err error) {
	if n.Kind == KindCall {
		r.undoing.answered(n.Compensate, w, res)
	}
	switch {
	case w.Kind == snapshot.WaitNext && n.Kind == KindCompensate && r.top().Pointer == n.Pointer:
		return r.undoing.compensateTried(n)
	case w.Kind == snapshot.WaitNext:
		return false, nil
	case w.Kind == snapshot.WaitRetry && n.Kind == KindList:
		return r.tries.attemptHook(n, w)
	case w.Kind == snapshot.WaitRetry:
		return false, r.tries.attempt(n, w)
	case w.Kind == snapshot.WaitTimeout && (n.Kind != KindCompensate || w.Arm == 0): // else of one compensation
		return false, r.timeout(n, w)
	case n.Kind == KindState && w.Kind == snapshot.WaitState:
		return r.states.triggered(n, res.Output, res.Actor)
	case n.Kind == KindState:
		return r.states.stale(n)
	case n.Kind == KindEach:
		return r.calls.gather(n, w, res)
	case n.Kind == KindCompensate:
		return r.undoing.compensated(n, w, res)
	case res.Error != nil:
		return false, &raised{e: *res.Error}
	}
	if n.Kind == KindListen {
		return r.listens.delivered(n, w, res.Output)
	}
	if r.top().Pointer != n.Pointer {
		return false, fmt.Errorf("program: %s: %s is not the task that runs", r.t.Snap.InstanceID, n.Pointer)
	}
	switch n.Kind {
	case KindWait:
		return false, r.complete(n, r.data, n.Then)
	default:
		return false, r.complete(n, rawValue(orNull(res.Output)), n.Then)
	}
}

// timeout ends everything inside the task whose deadline w was, and raises.
func (r waits) timeout(n *Node, w snapshot.Wait) error {
	for i := range r.b.Frames {
		if r.b.Frames[i].Deadline != w.Token {
			continue
		}
		r.b.Frames[i].Deadline = ""
		if i == 0 { // the workflow's own: a retry begins the task of its list anew
			for _, f := range slices.Backward(r.b.Frames[1:]) {
				r.tries.restore(f)
			}
		}
		r.unwind(i, engine.TaskExpired)
		if i > 0 {
			r.tries.restore(r.b.Frames[i])
			r.pop() // the error is raised at the task, not inside it
		}
		if n.Kind == KindList && n.parent != nil {
			n = n.parent // one attempt at a try
		}
		e := raised{e: snapshot.Error{Type: engine.ErrorBase + engine.ErrTimeout, Status: 408, Title: "Timeout", Instance: n.Pointer}}
		e.e.Detail = n.Pointer + " was not done in time"
		return &e
	}
	return fmt.Errorf("program: %s: no task has the deadline at %s", r.t.Snap.InstanceID, w.Pointer)
}

// unwind drops the frames behind index i, with all that they wait for and the
// branches that the innermost has forked.
func (r waits) unwind(i int, how engine.TaskEvent) {
	deadlines, listens := map[string]bool{}, map[string]bool{} // of what stays
	for j, f := range r.b.Frames[:i+1] {
		if j < i {
			listens[f.Pointer] = true
		}
		if f.Deadline != "" {
			deadlines[f.Deadline] = true
		}
	}
	r.forks.prune(how)
	r.w.tellFrames(engine.TaskCancelledEvent, r.progress.unpublishedFrames(i+1), nil)
	r.b.Frames = r.b.Frames[:i+1]
	r.t.Withdraw(how, func(w snapshot.Wait) bool {
		return w.Branch == r.b.ID && !deadlines[w.Token] && !(w.Kind == snapshot.WaitEvent && listens[w.Pointer])
	})
}

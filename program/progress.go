package program

import (
	"slices"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// IsTask reports whether a task is at a pointer.
func (p *Program) IsTask(pointer string) bool { return p.node(pointer).isTask() }

// isTask reports whether a node is a task that the author has written where it
// runs: not a list, nor a part of an extension.
func (n *Node) isTask() bool {
	if n == nil || n.Kind == KindList || n.Kind == KindArms {
		return false
	}
	if n.Kind == KindDo && slices.ContainsFunc(n.Body.List, func(x *Node) bool { return x.Pointer+"/extensions" == n.Pointer }) {
		return false // the list around an extended task
	}
	for ; n != nil; n = n.parent {
		if n.Of != "" {
			return false
		}
	}
	return true
}

// tell tells an event of a task, or of the workflow when task is "". Most turns
// publish none, and tasks come by the thousand.
func (w *work) tell(typ, task string, e *snapshot.Error) {
	if w.t.In.Lifecycle {
		w.t.Tell(engine.LifecycleEvent{Type: typ, Task: task, Error: e})
	}
}

// tellFrames tells the event of the tasks of frames, the innermost first.
func (w *work) tellFrames(typ string, frames []snapshot.Frame, e *snapshot.Error) {
	for _, f := range slices.Backward(frames) {
		w.tell(typ, f.Pointer, e)
	}
}

// cancelled tells that the tasks under way in some branches end with what is
// around them, the innermost and the youngest branch first.
func (w *work) cancelled(of func(b *snapshot.Branch) bool) {
	for _, b := range slices.Backward(w.t.Snap.Branches) {
		if of(b) {
			w.tellFrames(engine.TaskCancelledEvent, b.Frames, nil)
		}
	}
}

// reached tells that the flow has come to a task; again says that an operator
// has sent it there once more.
func (w *work) reached(n *Node) (again bool) {
	if again = w.again == n.Pointer; again {
		w.again = ""
		w.tell(engine.TaskRetriedEvent, n.Pointer, nil)
		return true
	}
	w.tell(engine.TaskCreatedEvent, n.Pointer, nil)
	return false
}

// completed tells the end of a task whose frame was f.
func (w *work) completed(n *Node, f snapshot.Frame) {
	if n.Kind == KindListen {
		w.t.Tell(engine.LifecycleEvent{Type: engine.WorkflowCorrelationCompletedEvent, Keys: f.Bound})
	}
	w.tell(engine.TaskCompletedEvent, n.Pointer, nil)
}

// ended tells the end of the workflow at a task of the branch. None is under way any more.
func (r progress) ended() {
	if r.t.In.Lifecycle {
		r.left()
		r.t.Snap.Branches = nil
	}
}

// left tells that the tasks around one at which the workflow ends are done, and those
// beside it are cancelled.
func (r progress) left() {
	if !r.t.In.Lifecycle {
		return
	}
	line := []*snapshot.Branch{r.b} // from the branch to the root
	for line[len(line)-1].ID != 0 {
		line = append(line, r.t.Snap.Branch(line[len(line)-1].Parent))
	}
	r.w.cancelled(func(b *snapshot.Branch) bool { return !slices.Contains(line, b) })
	for _, b := range line {
		r.w.tellFrames(engine.TaskCompletedEvent, b.Frames, nil)
	}
}

// failed tells that an error has left the tasks of the frames from an index
// on, and before them the task that raised it, which may have no frame.
func (r progress) failed(raiser *Node, from int, e snapshot.Error) {
	if !r.t.In.Lifecycle {
		return
	}
	frames := r.unpublishedFrames(from)
	if raiser != nil && !slices.ContainsFunc(r.b.Frames, func(f snapshot.Frame) bool { return f.Pointer == raiser.Pointer }) {
		r.w.tell(engine.TaskFaultedEvent, raiser.Pointer, &e)
	}
	r.w.tellFrames(engine.TaskFaultedEvent, frames, &e)
	r.told = from
}

// failing tells that an error leaves the task on top.
func (r progress) failing(err error) {
	if e, ok := asRaised(err); ok {
		r.w.tell(engine.TaskFaultedEvent, r.top().Pointer, &e.e)
	}
}

// unpublishedFrames are the frames from an index on whose end has not been told.
func (r progress) unpublishedFrames(from int) []snapshot.Frame {
	to := len(r.b.Frames)
	if r.told > 0 {
		to = min(to, r.told)
	}
	return r.b.Frames[min(from, to):to]
}

// mending tells that an operator has the tasks around the failed one go on, and
// notes which one that is.
func (r progress) mending() {
	for _, f := range r.b.Frames {
		r.w.tell(engine.TaskRetriedEvent, f.Pointer, nil)
	}
	if list := r.p.node(r.top().Pointer); list != nil && r.top().Next < len(list.List) {
		r.w.again = list.List[r.top().Next].Pointer
	}
}

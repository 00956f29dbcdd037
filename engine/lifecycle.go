package engine

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// The lifecycle events of the Open Workflow DSL that it requires of a runtime.
// Tasks of extensions have none: they are part of the task that they extend.
const (
	WorkflowStartedEvent              = "io.serverlessworkflow.workflow.started.v1"
	WorkflowSuspendedEvent            = "io.serverlessworkflow.workflow.suspended.v1"
	WorkflowResumedEvent              = "io.serverlessworkflow.workflow.resumed.v1" // also: retried or skipped by an operator
	WorkflowCorrelationStartedEvent   = "io.serverlessworkflow.workflow.correlation-started.v1"
	WorkflowCorrelationCompletedEvent = "io.serverlessworkflow.workflow.correlation-completed.v1"
	WorkflowCancelledEvent            = "io.serverlessworkflow.workflow.cancelled.v1"
	WorkflowFaultedEvent              = "io.serverlessworkflow.workflow.faulted.v1"
	WorkflowCompletedEvent            = "io.serverlessworkflow.workflow.completed.v1"

	TaskCreatedEvent   = "io.serverlessworkflow.task.created.v1" // the flow has come to it, and its if holds
	TaskStartedEvent   = "io.serverlessworkflow.task.started.v1" // its input is valid
	TaskSuspendedEvent = "io.serverlessworkflow.task.suspended.v1"
	TaskResumedEvent   = "io.serverlessworkflow.task.resumed.v1"
	TaskRetriedEvent   = "io.serverlessworkflow.task.retried.v1"   // it runs again, after its error
	TaskCancelledEvent = "io.serverlessworkflow.task.cancelled.v1" // what is around it has ended it
	TaskFaultedEvent   = "io.serverlessworkflow.task.faulted.v1"   // an error has left it
	TaskCompletedEvent = "io.serverlessworkflow.task.completed.v1"
)

// TargetLifecycle is the target of a command that publishes lifecycle events;
// its input is a [Lifecycle]. It has no token, and no function can have this
// name.
const TargetLifecycle = "event:lifecycle"

// Lifecycle is what happened to an instance in one turn, in order.
type Lifecycle struct {
	Definition snapshot.Definition `json:"definition"`
	Version    int64               `json:"version"` // of the snapshot that the turn wrote
	At         time.Time           `json:"at"`
	Previous   int64               `json:"previous,omitempty"` // position of the command before, 0 = none: its events come first
	Events     []LifecycleEvent    `json:"events"`
}

// LifecycleEvent is one of them.
type LifecycleEvent struct {
	Type  string            `json:"type"`
	Task  string            `json:"task,omitempty"`            // pointer; "" = it is the workflow's
	Error *snapshot.Error   `json:"error,omitempty"`           // of a fault
	Keys  map[string]string `json:"correlationKeys,omitempty"` // of a completed correlation, each canonical JSON
}

// life gathers the lifecycle events of a turn.
type life struct {
	tasks  Tasked // of the definition; nil = it has none
	events []LifecycleEvent
	again  string // pointer of the task that an operator has retried, until it is reached
}

// watch has the turn gather lifecycle events, when it shall. A schedule is no
// run of a workflow, and has none.
func (t *Turn) watch(def Definition) {
	t.def = def
	if !t.In.Lifecycle || t.Snap.Schedule != nil {
		return
	}
	t.life = &life{}
	t.life.tasks, _ = def.(Tasked)
}

// tell notes a lifecycle event of a task, or of the workflow when task is "".
func (t *Turn) tell(typ, task string, e *snapshot.Error) {
	if t.life == nil {
		return
	}
	if task != "" && (t.life.tasks == nil || !t.life.tasks.IsTask(task)) {
		return
	}
	t.life.events = append(t.life.events, LifecycleEvent{Type: typ, Task: task, Error: e})
}

// IsTask reports whether a task is at a pointer.
func (p *Program) IsTask(pointer string) bool { return p.nodes[pointer].isTask() }

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

// tellFrames notes the event of the tasks of frames, the innermost first.
func (t *Turn) tellFrames(typ string, frames []snapshot.Frame, e *snapshot.Error) {
	for _, f := range slices.Backward(frames) {
		t.tell(typ, f.Pointer, e)
	}
}

// tellBranches notes the event of the tasks under way in some branches, the
// innermost and the youngest branch first.
func (t *Turn) tellBranches(typ string, of func(b *snapshot.Branch) bool) {
	if t.life == nil {
		return
	}
	for _, b := range slices.Backward(t.Snap.Branches) {
		if of(b) {
			t.tellFrames(typ, b.Frames, nil)
		}
	}
}

// tellAll notes the event of all tasks under way: the innermost first, but
// those that go on from outside in.
func (t *Turn) tellAll(typ string) {
	if t.life == nil {
		return
	}
	from := len(t.life.events)
	t.tellBranches(typ, func(*snapshot.Branch) bool { return true })
	if typ == TaskResumedEvent {
		slices.Reverse(t.life.events[from:])
	}
}

// reached notes that the flow has come to a task; again says that an operator
// has sent it there once more.
func (t *Turn) reached(n *Node) (again bool) {
	if t.life == nil {
		return false
	}
	if again = t.life.again == n.Pointer; again {
		t.life.again = ""
		t.tell(TaskRetriedEvent, n.Pointer, nil)
		return true
	}
	t.tell(TaskCreatedEvent, n.Pointer, nil)
	return false
}

// completed notes the end of a task whose frame was f.
func (t *Turn) completed(n *Node, f snapshot.Frame) {
	if t.life == nil {
		return
	}
	if n.Kind == KindListen {
		t.tell(WorkflowCorrelationCompletedEvent, "", nil)
		t.life.events[len(t.life.events)-1].Keys = f.Bound
	}
	t.tell(TaskCompletedEvent, n.Pointer, nil)
}

// ended notes the end of the workflow at a task of the branch: the tasks around
// it are done, those beside it are cancelled.
func (r *run) ended() {
	if r.t.life == nil {
		return
	}
	line := []*snapshot.Branch{r.b} // from the branch to the root
	for line[len(line)-1].ID != 0 {
		line = append(line, r.t.Snap.Branch(line[len(line)-1].Parent))
	}
	r.t.tellBranches(TaskCancelledEvent, func(b *snapshot.Branch) bool { return !slices.Contains(line, b) })
	for _, b := range line {
		r.t.tellFrames(TaskCompletedEvent, b.Frames, nil)
	}
	r.t.life.tasks = nil // nothing more is to be told of them
}

// failed notes that an error has left the tasks of the frames from an index
// on, and before them the task that raised it, which may have no frame.
func (r *run) failed(raiser *Node, from int, e snapshot.Error) {
	if r.t.life == nil {
		return
	}
	frames := r.untold(from)
	if raiser != nil && !slices.ContainsFunc(r.b.Frames, func(f snapshot.Frame) bool { return f.Pointer == raiser.Pointer }) {
		r.t.tell(TaskFaultedEvent, raiser.Pointer, &e)
	}
	r.t.tellFrames(TaskFaultedEvent, frames, &e)
	r.told = from
}

// failing notes that an error leaves the task on top.
func (r *run) failing(err error) {
	if e, ok := asRaised(err); ok {
		r.t.tell(TaskFaultedEvent, r.top().Pointer, &e.e)
	}
}

// withdrawn notes that the tasks of the frames from an index on end without
// an output.
func (r *run) withdrawn(from int) {
	if r.t.life != nil {
		r.t.tellFrames(TaskCancelledEvent, r.untold(from), nil)
	}
}

// untold are the frames from an index on whose end has not been noted.
func (r *run) untold(from int) []snapshot.Frame {
	to := len(r.b.Frames)
	if r.told > 0 {
		to = min(to, r.told)
	}
	return r.b.Frames[min(from, to):to]
}

// mending notes that an operator has the tasks around the failed one go on,
// and which one that is.
func (t *Turn) mending(r *run) {
	if t.life == nil {
		return
	}
	for _, f := range r.b.Frames {
		t.tell(TaskRetriedEvent, f.Pointer, nil)
	}
	if list := r.p.nodes[r.top().Pointer]; list != nil && r.top().Next < len(list.List) {
		t.life.again = list.List[r.top().Next].Pointer
	}
}

// publishLifecycle adds the command that publishes what the turn has noted.
func (t *Turn) publishLifecycle() {
	if t.life == nil || len(t.life.events) == 0 {
		return
	}
	input, _ := json.Marshal(Lifecycle{ // plain data cannot fail
		Definition: t.Snap.Definition, Version: t.Snap.Version, At: t.In.Now, Previous: t.Snap.Lifecycle, Events: t.life.events,
	})
	c := Command{Target: TargetLifecycle, Input: input, Headers: t.Snap.Headers}
	t.keyed(&c)
	t.Snap.Lifecycle = t.Append(Entry{Kind: KindCommand, Dir: Out, Type: EntryLifecycle, Command: &c, Meta: t.meta("")})
}

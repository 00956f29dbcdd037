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

// TargetLifecycle is the target of a command that publishes lifecycle events; its input is a
// [Lifecycle]. It has no token, and no function can have this name.
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
	tasks  Tasked // the definition; nil = its tasks have none
	events []LifecycleEvent
}

// watch has the turn gather lifecycle events, when it shall. A schedule is no run of a workflow, and has none.
func watch(t *Turn, def Definition) {
	t.def = def
	if !t.In.Lifecycle || t.Snap.Schedule != nil {
		return
	}
	t.life = &life{}
	t.life.tasks, _ = def.(Tasked)
}

// Tell adds a lifecycle event to those that the turn publishes, in the order of the calls. Definitions tell what
// happens to their tasks; the turn itself tells the events of workflows, and what becomes of tasks under way when it
// ends, suspends or resumes an instance. Of a pointer that is no task (see [Tasked]), and in a turn that publishes
// none (see [Input]), nothing is told.
func (t *Turn) Tell(e LifecycleEvent) {
	if t.life == nil {
		return
	}
	if e.Task != "" && (t.life.tasks == nil || !t.life.tasks.IsTask(e.Task)) {
		return
	}
	t.life.events = append(t.life.events, e)
}

// TellAll tells the event of all tasks under way: the innermost first, but those that go on from outside in.
func (t *Turn) TellAll(typ string) {
	if t.life == nil {
		return
	}
	pointers := t.Snap.UnderWay()
	if typ == TaskResumedEvent {
		slices.Reverse(pointers)
	}
	for _, p := range pointers {
		t.Tell(LifecycleEvent{Type: typ, Task: p})
	}
}

// publishLifecycle adds the command that publishes what the turn has noted.
func publishLifecycle(t *Turn) {
	if t.life == nil || len(t.life.events) == 0 {
		return
	}
	input, _ := json.Marshal(Lifecycle{ // plain data cannot fail
		Definition: t.Snap.Definition, Version: t.Snap.Version, At: t.In.Now, Previous: t.Snap.Lifecycle, Events: t.life.events,
	})
	c := Command{Target: TargetLifecycle, Input: input, Headers: t.Snap.Headers}
	t.Effects.keyed(&c)
	t.Snap.Lifecycle = t.Append(Entry{Kind: KindCommand, Dir: Out, Type: EntryLifecycle, Command: &c})
}

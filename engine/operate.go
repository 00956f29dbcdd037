package engine

import (
	"encoding/json"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Operation is what an operator asks of one instance (B8).
type Operation string

const (
	Suspend Operation = "suspend" // signals are kept from now on
	Resume  Operation = "resume"  // and are applied now
	Retry   Operation = "retry"   // run the failed task of a faulted instance again
	// What a retry does where it would send another request than the one before,
	// of which nobody knows what became:
	RetrySame Operation = "retry-same" // send that one again, under its key
	RetryNew  Operation = "retry-new"  // send the new one, under a key of its own
	Skip      Operation = "skip"       // take it as done, with an output
	Cancel    Operation = "cancel"     // end the instance; nothing is compensated
)

// Operations lists them all.
var Operations = []Operation{Suspend, Resume, Retry, RetrySame, RetryNew, Skip, Cancel}

// Operate decides what an operation does. in.Signal carries the actor in its
// headers; output is what a skipped task is taken to have answered (nil = null).
// Problems: instance.closed, instance.not-faulted, instance.compensated,
// instance.suspended, instance.not-suspended, effect.undecided.
func Operate(def Definition, snap snapshot.Snapshot, op Operation, output json.RawMessage, in Input) (*Outcome, error) {
	out, err := operate(def, snap, op, output, in)
	if err != nil {
		return nil, err
	}
	return followed(def, out, in), nil
}

func operate(def Definition, snap snapshot.Snapshot, op Operation, output json.RawMessage, in Input) (*Outcome, error) {
	conflict := func(code, detail string) (*Outcome, error) {
		return nil, problem.New(problem.Conflict, code, "instance %s %s", snap.InstanceID, detail)
	}
	if snap.Status.Closed() {
		return conflict("instance.closed", "is "+string(snap.Status))
	}
	retries := op == Retry || op == RetrySame || op == RetryNew
	if (retries || op == Skip) && snap.Status != snapshot.Faulted {
		return conflict("instance.not-faulted", "is "+string(snap.Status)+", not faulted")
	}
	if op == Retry && snap.Error != nil && snap.Error.Type == TypeUndecided {
		return nil, problem.New(problem.Conflict, "effect.undecided", "instance %s: %s", snap.InstanceID, snap.Error.Detail).
			WithHint("ask the outside what became of it, then retry-same, retry-new or skip")
	}
	if (retries || op == Skip) && snap.Undo != nil && snap.Undo.Done {
		return conflict("instance.compensated", "has compensated what it had completed: start it anew, and cancel this one")
	}
	t := newTurn(snap.Clone(), in)
	t.watch(def)
	switch op {
	case Suspend:
		if snap.Status == snapshot.Suspended {
			return conflict("instance.suspended", "is suspended already")
		}
		if snap.Status == snapshot.Faulted {
			return conflict("instance.faulted", "is faulted: nothing goes on until it is retried or skipped")
		}
		t.Snap.ResumeAs, t.Snap.Status = snap.Status, snapshot.Suspended
		t.operated(EntrySuspended)
		t.tellAll(TaskSuspendedEvent)
		t.Tell(LifecycleEvent{Type: WorkflowSuspendedEvent})
		return t.finish()
	case Resume:
		if snap.Status != snapshot.Suspended {
			return conflict("instance.not-suspended", "is "+string(snap.Status))
		}
		t.operated(EntryResumed)
		t.Snap.Status, t.Snap.ResumeAs = snap.ResumeAs, ""
		t.Tell(LifecycleEvent{Type: WorkflowResumedEvent})
		t.tellAll(TaskResumedEvent)
		if err := t.catchUp(def); err != nil {
			return nil, err
		}
	case Cancel:
		t.operated(EntryCancelled)
		t.cancel()
		t.tellParent(nil, cancelledChild())
	case Retry, RetrySame, RetryNew:
		t.effect = op
		t.operated(EntryRetried)
		t.Snap.Status = snapshot.Running
		t.Tell(LifecycleEvent{Type: WorkflowResumedEvent})
		if err := t.recover(def, op, nil); err != nil {
			return nil, err
		}
	case Skip:
		t.operated(EntrySkipped)
		t.Snap.Status = snapshot.Running
		t.Tell(LifecycleEvent{Type: WorkflowResumedEvent})
		if err := t.recover(def, op, output); err != nil {
			return nil, err
		}
	default:
		return nil, problem.New(problem.Invalid, "operation.unknown", "operation %q is unknown", op)
	}
	return t.finish()
}

// catchUp applies the kept signals in the order in which they came: those with
// a token to their waits, the others to what they match now. Those that match
// nothing stay kept, and so do all that follow a fault.
func (t *Turn) catchUp(def Definition) error {
	kept := t.Snap.Buffer
	t.Snap.Buffer = nil
	for i, b := range kept {
		if t.Snap.Status.Closed() {
			return nil
		}
		if t.Snap.Status == snapshot.Faulted {
			t.Snap.Buffer = append(t.Snap.Buffer, kept[i:]...)
			return nil
		}
		env := signal.Envelope{Type: signal.Type(b.Type), Payload: b.Payload}
		if b.Token == "" {
			delivered, later, err := t.deliverEvent(def, env, b.Actor)
			if err != nil {
				return err
			}
			if !delivered || later && !t.Snap.Status.Closed() {
				t.Snap.Buffer = append(t.Snap.Buffer, b)
			}
			continue
		}
		w, ok := t.Snap.Wait(b.Token)
		if !ok {
			continue
		}
		r, err := result(env)
		if err != nil {
			return err
		}
		r.Actor = b.Actor
		if err := t.apply(def, w, r, env); err != nil {
			return err
		}
	}
	return nil
}

func (t *Turn) operated(entry string) {
	m := Meta{Actor: t.In.Signal.Headers[signal.HeaderActor]}
	if t.Snap.Error != nil {
		m.Pointer = t.Snap.Error.Instance
	}
	t.Append(Entry{Kind: KindEvent, Dir: In, Type: entry, Data: t.In.Signal.Payload, Meta: m})
}

// Amend decides a turn in which nothing runs: what an instance remembers is
// changed as an operator asks, and the entry that change gives says how. in.Signal
// carries the actor. Problem: instance.closed, and those of change.
func Amend(snap snapshot.Snapshot, in Input, change func(t *Turn) (Entry, error)) (*Outcome, error) {
	if snap.Status.Closed() {
		return nil, problem.New(problem.Conflict, "instance.closed", "instance %s is %s", snap.InstanceID, snap.Status)
	}
	t := newTurn(snap.Clone(), in)
	e, err := change(t)
	if err != nil {
		return nil, err
	}
	e.Kind, e.Dir, e.Meta.Actor = KindEvent, In, in.Signal.Headers[signal.HeaderActor]
	t.Append(e)
	return t.finish()
}

// FaultFirst begins an instance that has faulted: with an error that the engine
// could not see when it decided its first turn, whose snapshot is begun.
func FaultFirst(def Definition, begun snapshot.Snapshot, e snapshot.Error, in Input) (*Outcome, error) {
	t := newTurn(snapshot.Snapshot{
		InstanceID: begun.InstanceID, Definition: begun.Definition, Business: begun.Business, Status: snapshot.Running,
		StartedAt: begun.StartedAt, Headers: begun.Headers, State: snapshot.State{Input: begun.State.Input},
		Parent: begun.Parent, Schedule: begun.Schedule, Incarnation: begun.Incarnation,
	}, in)
	t.watch(def)
	t.started()
	t.Fault(e)
	return t.finish()
}

// Unwritten is the error of an instance of which a turn could not be written.
func Unwritten(cause error) snapshot.Error {
	title := "Output cannot be written"
	if problem.KindOf(cause) == problem.TooLarge {
		title = "Limit exceeded"
	}
	return snapshot.Error{Type: ErrorBase + ErrRuntime, Status: 500, Title: title, Detail: cause.Error()}
}

// FaultWith stops an instance with an error that the engine could not see when
// it decided, such as a snapshot over its size limit.
func FaultWith(snap snapshot.Snapshot, e snapshot.Error, in Input) (*Outcome, error) {
	t := newTurn(snap.Clone(), in)
	t.watch(nil)
	t.Fault(e)
	return t.finish()
}

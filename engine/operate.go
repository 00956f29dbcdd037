package engine

import (
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
	// What a retry does where it would send another request than the one before, of which nobody knows what became:
	RetrySame  Operation = "retry-same" // send that one again, under its key
	RetryNew   Operation = "retry-new"  // send the new one, under a key of its own
	Skip       Operation = "skip"       // take it as done, with an output
	Cancel     Operation = "cancel"     // end the instance; nothing is compensated
	Compensate Operation = "compensate" // end the instance once what it has done is compensated
)

// Operations lists them all.
var Operations = []Operation{Suspend, Resume, Retry, RetrySame, RetryNew, Skip, Cancel, Compensate}

// Decide decides a turn that no signal makes: change says what it does, and in.Signal who asks.
// Signals that were kept until their turn came are applied when it has come; without a definition
// nothing runs, and none is. Problems: instance.closed, and those of change.
func Decide(def Definition, snap snapshot.Snapshot, in Input, change func(t *Turn) error) (*Outcome, error) {
	if snap.Status.Closed() && def != nil {
		return nil, problem.New(problem.Conflict, "instance.closed", "instance %s is %s", snap.InstanceID, snap.Status)
	}
	t := newTurn(snap.Clone(), in)
	watch(t, def)
	if err := change(t); err != nil {
		return nil, err
	}
	out, err := t.finish()
	if err != nil || def == nil {
		return out, err
	}
	return followed(def, out, in), nil
}

// CatchUp applies the kept signals in the order in which they came: those with a token to their waits, the others to
// what they match now. Those that match nothing stay kept, and so do all that follow a fault.
func (t *Turn) CatchUp() error {
	kept := t.Snap.Buffer
	t.Kept, t.Snap.Buffer = kept, nil
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
			var only []string
			if b.Taken {
				only = b.For
			}
			took, later, err := intake{t}.deliverEvent(t.def, env, b.Actor, only)
			if err != nil {
				return err
			}
			if left, ok := b.Left(took, later); ok && !t.Snap.Status.Closed() {
				t.Snap.Buffer = append(t.Snap.Buffer, left)
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
		if err := (intake{t}).apply(t.def, w, r, env); err != nil {
			return err
		}
	}
	return nil
}

// Operated records what somebody has asked for, of the type of the entry.
func (t *Turn) Operated(entry string) {
	e := Entry{Kind: KindEvent, Dir: In, Type: entry, Data: t.In.Signal.Payload, Meta: Meta{Actor: t.In.Signal.Headers[signal.HeaderActor]}}
	if t.Snap.Error != nil {
		e.Meta.Pointer = t.Snap.Error.Instance
	}
	if t.In.Signal.Type == signal.OperatorRequest { // from a queue: it may come again
		e.SignalID = t.In.Signal.SignalID
	}
	t.Append(e)
}

// FaultFirst begins an instance that has faulted: with an error that the engine
// could not see when it decided its first turn, whose snapshot is begun.
func FaultFirst(def Definition, begun snapshot.Snapshot, e snapshot.Error, in Input) (*Outcome, error) {
	t := newTurn(snapshot.Snapshot{
		InstanceID: begun.InstanceID, Definition: begun.Definition, Business: begun.Business, Status: snapshot.Running,
		StartedAt: begun.StartedAt, Headers: begun.Headers, State: snapshot.State{Input: begun.State.Input},
		Parent: begun.Parent, Schedule: begun.Schedule, Incarnation: begun.Incarnation,
	}, in)
	t.Basis.begun(*t.Snap)
	t.Basis.By = EntryFaulted
	watch(t, def)
	intake{t}.started()
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

// FaultWith stops an instance with an error that the engine could not see when it decided, such as
// a snapshot over its size limit. Who waits for one that has something to undo waits on.
func FaultWith(snap snapshot.Snapshot, e snapshot.Error, in Input) (*Outcome, error) {
	t := newTurn(snap.Clone(), in)
	t.Basis.By = EntryFaulted
	watch(t, nil)
	ended(t)
	if s := t.Snap; s.Compensating != nil || len(s.Compensations)+len(s.SubFrames) > 0 {
		t.Halt(e)
	} else {
		t.Fault(e)
	}
	return t.finish()
}

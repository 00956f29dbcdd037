package engine

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Turn is a decision in the making: a private copy of the snapshot, and what has been decided so far. A [Definition]
// changes the snapshot through it: it asks for something by Perform, Detach, Ask, Emit, Spawn or Await, goes back on
// it by Withdraw, and ends the instance by Complete, Fault or Halt. In Snap it writes what it remembers itself: its
// branches, state and compensations.
type Turn struct {
	Snap    *snapshot.Snapshot // of the outcome
	In      Input
	Effects Effects

	Retry Operation           // RetrySame or RetryNew: what an operator has decided; "" = nothing
	Basis Basis               // who decides without a signal says By and With
	Kept  []snapshot.Buffered // what CatchUp applies: in Snap it is no more

	out     Outcome
	first   [2]Entry   // of the outcome: what came, and a command, in most turns
	ordinal int        // of the next derived id in this turn
	steps   int        // tasks run so far
	bytes   int        // of the data that the turn writes beside the snapshot
	ran     []string   // their pointers, for the timeline
	life    *life      // nil = no lifecycle events
	refusal string     // why the signal, which nobody has any more, is refused
	awaits  bool       // the turn adds a wait
	keeps   bool       // what children have done stays done: nobody undoes it
	def     Definition // what the instance runs; nil = nothing
}

// Effects gives commands their keys, and intake takes the signal, each for its turn.
type (
	Effects struct{ *Turn }
	intake  struct{ *Turn }
)

// MaxTurnBytes bounds the data that the tasks of a turn write beside the snapshot, so that a thousand tasks of a
// megabyte each are no gigabyte: with more, the turn ends and continues in another.
const MaxTurnBytes = 4 << 20

// maxRan bounds how many pointers of a turn the timeline shows.
const maxRan = 64

func newTurn(s snapshot.Snapshot, in Input) *Turn {
	l := &in.Limits
	l.Steps, l.FanOut, l.Items = cmp.Or(l.Steps, DefaultSteps), cmp.Or(l.FanOut, DefaultFanOut), cmp.Or(l.Items, DefaultItems)
	in.Now = in.Now.UTC().Truncate(time.Microsecond)
	in.Epoch = max(in.Epoch, 1)
	t := &Turn{In: in, Basis: in.basis(&s), out: Outcome{Snapshot: s, Disposition: Applied}}
	t.out.Entries = t.first[:0]
	t.Snap, t.Effects = &t.out.Snapshot, Effects{t}
	t.Snap.EnterEpoch(in.Epoch)
	t.Snap.Version++
	t.Snap.UpdatedAt = in.Now
	return t
}

// Step counts one task towards the turn's budget and the timeline; it reports
// false when the budget is spent and the task must wait for another turn.
func (t *Turn) Step(pointer string) bool {
	if t.steps >= t.In.Limits.Steps || t.steps > 0 && t.bytes >= MaxTurnBytes {
		return false
	}
	t.steps++
	if len(t.ran) < maxRan {
		t.ran = append(t.ran, pointer)
	}
	return true
}

// NewToken returns a single-use, unguessable id, for a wait about which something is decided by its token before it
// is made. It depends only on the instance's incarnation, the epoch, the version this turn writes and the order of
// calls, so a repeated decision repeats it and a revisit of the same task makes a new one.
func (t *Turn) NewToken() string {
	t.ordinal++
	mac := signerOf(t.In.Key)
	defer signers.Put(mac)
	var buf [256]byte
	b := append(append(buf[:0], t.Snap.InstanceID...), '|')
	b = append(append(b, t.Snap.Incarnation...), '|')
	b = strconv.AppendInt(b, t.Snap.Epoch, 10)
	b = strconv.AppendInt(append(b, '|'), t.Snap.Version, 10)
	mac.Write(strconv.AppendInt(append(b, '|'), int64(t.ordinal), 10))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(buf[:0])[:18])
}

// signer is a hash that is keyed. Setting one up costs more than using it, and a node has one key.
type signer struct {
	hash.Hash
	key []byte
}

var signers sync.Pool

func signerOf(key []byte) *signer {
	if s, ok := signers.Get().(*signer); ok && bytes.Equal(s.key, key) {
		s.Reset()
		return s
	}
	return &signer{hmac.New(sha256.New, key), bytes.Clone(key)}
}

// uniqueID names what this turn makes; it is unique, not secret, and no longer for a long id of the instance.
func uniqueID(t *Turn) string {
	t.ordinal++
	var buf [64]byte
	b := append(append(buf[:0], t.Snap.Incarnation...), '.')
	b = strconv.AppendInt(b, t.Snap.Epoch, 10)
	b = strconv.AppendInt(append(b, '.'), t.Snap.Version, 10)
	return string(strconv.AppendInt(append(b, '.'), int64(t.ordinal), 10))
}

// taskID names a human task by its instance, for people type it.
func taskID(t *Turn) string {
	t.ordinal++
	return signal.Bounded(t.Snap.InstanceID + "." + strconv.FormatInt(t.Snap.Version, 10) + "." + strconv.Itoa(t.ordinal))
}

// Append adds an entry to the stream and returns its position. Of e it makes
// the position, the moment, and what the instance's headers say of a trace.
func (t *Turn) Append(e Entry) int64 {
	t.Snap.Position++
	e.Position = t.Snap.Position
	e.Meta.Correlation, e.Meta.Traceparent = t.Snap.Headers[signal.HeaderCorrelation], t.Snap.Headers[signal.HeaderTraceparent]
	if e.Command != nil && e.Command.GiveUp == 0 {
		if p, ok := t.def.(Patient); ok {
			e.Command.GiveUp = p.GiveUp()
		}
	}
	e.At = t.In.Now
	if t.bytes += len(e.Data); e.Command != nil {
		t.bytes += len(e.Command.Input)
	}
	t.out.Entries = append(t.out.Entries, e)
	return e.Position
}

// Await adds a wait and gives it a token, unless it has one of [Turn.NewToken]. A wait that has Until gets a timer.
func (t *Turn) Await(w snapshot.Wait) snapshot.Wait {
	if w.Token == "" {
		w.Token = t.NewToken()
	}
	w.Until = w.Until.UTC().Truncate(time.Microsecond)
	t.Snap.Waits, t.awaits = append(t.Snap.Waits, w), true
	switch {
	case w.Kind == snapshot.WaitNext:
		t.send(t.Snap.InstanceID, signal.InternalContinue, w.Token, time.Time{}, nil)
	case !w.Until.IsZero():
		typ := signal.TimerDue
		if w.Kind == snapshot.WaitRetry {
			typ = signal.RetryDue
		}
		t.send(t.Snap.InstanceID, typ, w.Token, w.Until, nil)
	}
	return w
}

// Perform adds a command and the wait for its result. A command that has no idempotency key gets one of its own. Of
// one that has its key by [Effects.Identify], the wait's Effect is the key, and Visit and Arm are the effect's: so a
// retry finds it again.
func (t *Turn) Perform(c Command, w snapshot.Wait) snapshot.Wait {
	t.Effects.keyed(&c)
	w.Kind = snapshot.WaitCommand
	w.Command = t.Snap.Position + 1
	w = t.Await(w)
	c.Token = w.Token
	c.Headers = t.Snap.Headers
	t.Append(Entry{Kind: KindCommand, Dir: Out, Type: EntryCall, Command: &c, Meta: Meta{Pointer: c.Pointer}})
	return w
}

// Detach adds a command whose result nobody waits for; one that fails is a dead letter.
func (t *Turn) Detach(c Command) {
	t.Effects.keyed(&c)
	c.Headers = t.Snap.Headers
	t.Append(Entry{Kind: KindCommand, Dir: Out, Type: EntryCall, Command: &c, Meta: Meta{Pointer: c.Pointer}})
}

// Emit adds a command that publishes a CloudEvent, as JSON of at most
// [MaxEventBytes], under a key of [Effects.Key]; "" = one of its own.
func (t *Turn) Emit(event json.RawMessage, pointer, key string) {
	c := Command{Target: TargetEvent, Input: event, Pointer: pointer, Headers: t.Snap.Headers, Key: key}
	t.Effects.keyed(&c)
	t.Append(Entry{Kind: KindCommand, Dir: Out, Type: EntryEmitted, Command: &c, Meta: Meta{Pointer: pointer}})
}

// Ask adds a human task and the wait for its completion; a due date is a timer beside it.
func (t *Turn) Ask(task Task, w snapshot.Wait) snapshot.Wait {
	if task.Assignee != "" && len(task.EscalateTo) > 0 && len(task.CandidateUsers)+len(task.CandidateGroups) == 0 {
		task.CandidateUsers = []string{task.Assignee} // else it would be everybody's once it is escalated
	}
	w.Kind = snapshot.WaitTask
	w.TaskID = taskID(t)
	w = t.Await(w)
	t.out.Tasks = append(t.out.Tasks, TaskChange{ID: w.TaskID, Event: TaskCreated, Create: &task})
	data, _ := json.Marshal(map[string]string{"taskId": w.TaskID, "title": task.Title})
	t.Append(Entry{Kind: KindEvent, Dir: Out, Type: EntryTask, Data: data, Meta: Meta{Pointer: w.Pointer}})
	if !task.DueAt.IsZero() {
		t.Await(snapshot.Wait{Kind: snapshot.WaitDue, Branch: w.Branch, Pointer: w.Pointer, TaskID: w.TaskID, Until: task.DueAt})
	}
	return w
}

// escalate is what the passing of a due date does: the task is escalated and stays open, as the workflow stays.
func (t *Turn) escalate(w snapshot.Wait) error {
	t.out.Tasks = append(t.out.Tasks, TaskChange{ID: w.TaskID, Event: TaskEscalated})
	data, err := json.Marshal(map[string]string{"taskId": w.TaskID})
	t.Append(Entry{Kind: KindEvent, Dir: Out, Type: EntryEscalated, Data: data, Meta: Meta{Pointer: w.Pointer}})
	return err
}

// send sends a signal to an instance; a due that is zero means at once.
func (t *Turn) send(to string, typ signal.Type, token string, due time.Time, payload json.RawMessage) {
	t.bytes += len(payload)
	headers := t.Snap.Headers
	if len(headers) == 0 {
		headers = nil
	}
	t.out.Send = append(t.out.Send, Message{Due: due, Envelope: signal.Envelope{
		SignalID: uniqueID(t), InstanceID: to, RuntimeProvider: signal.Provider, Type: typ,
		WaitingToken: token, OccurredAt: t.In.Now, DueAt: due, Payload: payload, Headers: headers,
	}})
}

// Withdraw removes the waits for which gone is true, and with them what was
// asked of the outside: commands count as settled, human tasks get how.
func (t *Turn) Withdraw(how TaskEvent, gone func(snapshot.Wait) bool) {
	var kept []snapshot.Wait
	for _, w := range t.Snap.Waits {
		if !gone(w) || w.Left > 0 && !t.keeps || w.Kind == snapshot.WaitChild && forgetChild(t, &w, false) {
			kept = append(kept, w)
			continue
		}
		if w.Command > 0 {
			t.out.Settled = append(t.out.Settled, Settled{Position: w.Command, Unknown: true})
			t.Effects.remember(w, false, true) // it may be under way
		}
		if w.Kind == snapshot.WaitTask {
			t.out.Tasks = append(t.out.Tasks, TaskChange{ID: w.TaskID, Event: how})
		}
	}
	t.Snap.Waits = kept
}

// take removes one wait because it is satisfied, and with a person's the due date beside it. A command that is
// answered without an answer of the outside has an unknown outcome.
func (t *Turn) take(w snapshot.Wait, unknown bool) {
	kept := t.Snap.Waits[:0]
	for i := range t.Snap.Waits {
		if other := &t.Snap.Waits[i]; other.Token != w.Token && (w.Kind != snapshot.WaitTask || other.TaskID != w.TaskID) {
			kept = append(kept, *other)
		}
	}
	clear(t.Snap.Waits[len(kept):])
	t.Snap.Waits = kept
	if w.Command > 0 {
		t.out.Settled = append(t.out.Settled, Settled{Position: w.Command, Unknown: unknown})
	}
	forgetChild(t, &w, true)
}

// Early takes the first kept signal that satisfies one of the waits to come, and says which.
func (t *Turn) Early(waits []snapshot.Wait) (i int, event json.RawMessage, ok bool, err error) {
	for at, b := range t.Snap.Buffer {
		if b.Token != "" {
			continue
		}
		for i, w := range waits {
			if b.Taken && !slices.Contains(b.For, w.Pointer) {
				continue
			}
			ok, err := t.def.Matches(t.Snap, w, b.Payload)
			if err != nil {
				return 0, nil, false, err
			}
			if ok {
				t.Snap.Buffer = slices.Delete(slices.Clone(t.Snap.Buffer), at, at+1)
				if left, ok := b.Left([]string{w.Pointer}, nil); ok {
					t.Snap.Buffer = slices.Insert(t.Snap.Buffer, at, left)
				}
				return i, b.Payload, true, nil
			}
		}
	}
	return 0, nil, false, nil
}

// Complete ends the instance with its output.
func (t *Turn) Complete(output json.RawMessage) {
	t.keeps = true
	done := t.Snap.Compensations
	t.TellAll(TaskCancelledEvent)
	t.Withdraw(TaskCancelled, func(snapshot.Wait) bool { return true })
	t.Snap.Branches, t.Snap.Buffer, t.Snap.Ahead, t.Snap.Error, t.Snap.Compensations = nil, nil, nil, nil, nil
	t.Snap.State.Output = output
	t.Snap.Status = snapshot.Completed
	t.Append(Entry{Kind: KindEvent, Dir: Out, Type: EntryCompleted, Data: output})
	t.Tell(LifecycleEvent{Type: WorkflowCompletedEvent})
	TellParent(t, output, nil, done...)
}

// Fault stops the instance with an error that nobody caught. Its branches stay,
// so that an operator can retry or skip the task that failed.
func (t *Turn) Fault(e snapshot.Error) {
	t.Halt(e)
	TellParent(t, nil, &e)
}

// Halt is Fault for an instance that may yet go on as if nothing had been: who waits for it is not told.
func (t *Turn) Halt(e snapshot.Error) {
	t.Withdraw(TaskCancelled, func(snapshot.Wait) bool { return true })
	t.Snap.Error = &e
	t.Snap.Status = snapshot.Faulted
	data, _ := json.Marshal(e)
	t.Append(Entry{Kind: KindEvent, Dir: Out, Type: EntryFaulted, Data: data, Meta: Meta{Pointer: e.Instance}})
	t.Tell(LifecycleEvent{Type: WorkflowFaultedEvent, Error: &e})
}

// settle makes the status that of an instance at rest.
func (t *Turn) settle() {
	s := t.Snap
	if s.Status.Closed() || s.Status == snapshot.Faulted || s.Status == snapshot.Suspended {
		return
	}
	s.Status = snapshot.Waiting
	for _, w := range s.Waits {
		if w.Kind == snapshot.WaitNext {
			s.Status = snapshot.Running
		}
	}
}

// finish settles the status and hands over the outcome.
func (t *Turn) finish() (*Outcome, error) {
	s := t.Snap
	t.settle()
	s.Arrange()
	publishLifecycle(t)
	t.Effects.forgetEffects()
	if err := check(s, t.awaits); err != nil {
		return nil, err
	}
	if n := len(t.out.Entries); n > 0 {
		m := &t.out.Entries[0].Meta
		m.Steps, m.Version, m.Basis = t.ran, s.Version, &t.Basis
		if p := t.out.Policy; p != nil {
			m.Policy = p.Version
		}
	}
	return &t.out, nil
}

// check holds the invariants of a snapshot to be written. Where no wait is new, each has a token of its own as before.
func check(s *snapshot.Snapshot, awaits bool) error {
	var seen map[string]bool
	if awaits = awaits && len(s.Waits) > 1; awaits {
		seen = make(map[string]bool, len(s.Waits))
	}
	for i := range s.Waits {
		w := &s.Waits[i]
		if w.Token == "" || seen[w.Token] {
			return fmt.Errorf("engine: %s: wait at %s has no token of its own", s.InstanceID, w.Pointer)
		}
		if awaits {
			seen[w.Token] = true
		}
		if len(s.Branches) > 0 && s.Branch(w.Branch) == nil {
			return fmt.Errorf("engine: %s: wait at %s has no branch", s.InstanceID, w.Pointer)
		}
	}
	stopped := s.Status.Closed() || s.Status == snapshot.Faulted
	if stopped && slices.ContainsFunc(s.Waits, func(w snapshot.Wait) bool { return w.Left == 0 || s.Status.Closed() }) {
		return fmt.Errorf("engine: %s: %s with %d waits", s.InstanceID, s.Status, len(s.Waits))
	}
	if !stopped && len(s.Waits) == 0 {
		return fmt.Errorf("engine: %s: %s and waits for nothing", s.InstanceID, s.Status)
	}
	return nil
}

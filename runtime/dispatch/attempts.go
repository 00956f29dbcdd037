package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/admission"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Job is a command that this node has claimed.
type Job struct {
	admission.Ticket[*Job]
	position      int64
	command       engine.Command
	failures      int       // attempts before this one, since the last delivery
	unknown, open bool      // an attempt may have done it: without an answer; with one that does not say that it has not
	nextAt        time.Time // of the row when it was read

	// Of a command that asks for an acknowledgement.
	deliveries int // so far
	delivered  time.Time
	since      time.Time // its age counts from then
	age        time.Duration
	note       string // of the claim; what the row says last

	inside bool // of an event: it has been published to the instances

	// Under the lock of the runtime, while the node performs it:
	abort  context.CancelFunc // ends the attempt under way; nil = there is none, or nobody waits for its result
	rounds int                // of the watch, since the attempt began
	next   *Job               // another performance of the same command by this node

	unresolved bool // it is not known whether the node has claimed it
}

// attempt is the number of the attempt that comes next, from 1.
func (j *Job) attempt() int { return j.failures + j.deliveries + 1 }

// place is where a command is: the node's own map goes by it, for commands that repeat one effect have one key.
type place struct {
	instance string
	position int64
}

func (j *Job) at() place { return place{j.Instance, j.position} }

// Key is the idempotency key of a command, as it has it: the same on every
// attempt, on every node. Commands made before they had one keep that of their place.
func Key(c engine.Command) string {
	if c.Key == "" {
		return c.Instance + "/" + strconv.FormatInt(c.Position, 10)
	}
	return c.Key
}

// newJob is a command of an instance's stream.
func newJob(instance string, position int64, c engine.Command) *Job {
	c.Instance, c.Position = instance, position
	j := &Job{position: position, command: c}
	j.Ticket = admission.Ticket[*Job]{Of: j, Instance: instance, Key: Key(c), Size: len(c.Input) + jobBytes}
	return j
}

// Reserve finds a place for a command that a turn is about to claim, or room to wait for one; ok is false when this
// node does not perform it, or has neither. Then come [Dispatcher.Launch] when the claim is durable,
// [Dispatcher.Cancel] when it was not made, [Dispatcher.Resolve] when nobody knows.
func (d *Dispatcher) Reserve(instance string, position int64, c engine.Command, since time.Time) (j *Job, ok bool) {
	j = newJob(instance, position, c)
	return j, d.outside.can(c.Target) && d.reserve(j, since)
}

// reserve finds a place for a command before it is claimed, or room to wait for one, so that a node never claims more
// than it can hold. It may wait from since on, for as long as its definition or the node says.
func (d *Dispatcher) reserve(j *Job, since time.Time) bool {
	j.To = admission.Destination(d.outside.destination(j))
	if j.nextAt.After(since) && j.command.Ack == 0 { // a pause before a retry is no wait for a place
		since = j.nextAt
	}
	if j.Late = since.Add(cmp.Or(j.command.GiveUp, d.GiveUpAfter)); j.command.Ack != 0 {
		if j.Late = d.Now().Add(cmp.Or(j.age, d.AckAge)); j.attempt() == 1 || j.since.IsZero() {
			since = d.Now()
		}
		j.since = since
	}
	return d.Admission.Reserve(&j.Ticket)
}

// Cancel gives back what was reserved for commands that were not claimed.
func (d *Dispatcher) Cancel(jobs ...*Job) {
	for _, j := range jobs {
		d.Admission.Cancel(&j.Ticket)
	}
}

// Launch has commands performed that this node has claimed.
func (d *Dispatcher) Launch(jobs ...*Job) {
	for _, j := range jobs {
		d.performing.track(j)
		if !d.Admission.Launch(&j.Ticket) {
			d.performing.untrack(j) // the node stops, and leaves it to the next
		}
	}
}

// start performs a command that has a place, on a worker that has nothing to do or on a new one. Workers stay: their
// stacks have grown to what a turn needs, and growing a new one costs as much as the turn.
func (d *Dispatcher) start(j *Job) {
	select {
	case d.jobs <- j:
	default:
		go d.worker(d.work, j)
	}
}

// worker performs one command after the other, all in one context: a context of its own for each would cost more than
// the rest of the work. An attempt that is aborted ends it, and with it the worker.
func (d *Dispatcher) worker(work context.Context, j *Job) {
	ctx, abort := context.WithCancel(work)
	defer abort()
	ctx, answer := d.Memory.Answers.Hold(ctx) // it is in memory until it is committed
	for {
		moved := d.perform(ctx, abort, j)
		answer.Release()
		if !moved {
			d.performing.untrack(j)
			d.Admission.Done(&j.Ticket, d.work.Err() != nil)
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case j = <-d.jobs:
		case <-ctx.Done():
			return
		}
	}
}

// perform makes one attempt and commits what came of it: the result as the instance's next turn, or the failure and
// the time of the next attempt. It reports whether the command goes on at another destination.
func (d *Dispatcher) perform(ctx context.Context, abort context.CancelFunc, j *Job) (moved bool) {
	if ctx.Err() != nil { // what gave it its place was given up with the node's work: it is not begun
		return false
	}
	room, err := d.Memory.Calls.Take(ctx, int64(callFactor*j.Size))
	if err != nil { // which is no attempt
		if ctx.Err() == nil {
			j.Counted = false
			d.Record.giveBack(ctx, j)
		}
		return false
	}
	defer room.Release()
	if wanted, err := d.Record.began(ctx, j); !wanted || err != nil {
		if err != nil && ctx.Err() == nil {
			d.Log.Error("command could not be begun; it will be performed again", "instance", j.Instance, "command", j.position, "error", err)
			d.Record.giveBack(ctx, j)
		}
		return false
	}
	output, failure := d.attempted(ctx, abort, j)
	if ctx.Err() != nil {
		return false // withdrawn; or given up at shutdown: performed again elsewhere
	}
	d.Admission.Left(&j.Ticket, healthOf(failure))
	if failure == nil && d.outside.goesOn(j) {
		to := admission.Destination(d.Performer.Destination(j.command))
		if d.Admission.Move(&j.Ticket, to, func() bool { return d.Record.uncounted(ctx, j) }) {
			return true
		}
		j.Counted = false // it has not been sent
		d.Record.giveBack(ctx, j)
		return false
	}
	if err = d.finish(ctx, j, output, failure); err == nil || ctx.Err() != nil {
		return false
	}
	d.Log.Error("the result of a command could not be committed; it will be performed again", "instance", j.Instance, "command", j.position, "error", err)
	j.unknown = j.unknown || failure == nil // it was done: a later attempt that fails does not say that it was not
	lost := snapshot.Error{Title: "Result not committed", Detail: err.Error()}
	if err := retryCommit(ctx, func() error { return d.Record.later(ctx, j, time.Minute, lost) }); err != nil && ctx.Err() == nil {
		d.Log.Error("command could not be given back", "instance", j.Instance, "command", j.position, "error", err)
	}
	return false
}

// healthOf is what an attempt says about its destination: an error that is not the destination's own is an answer.
func healthOf(f *engine.Failure) admission.Health {
	switch {
	case f == nil:
		return admission.Healthy
	case f.Ill:
		return admission.Ill
	case f.Retry, engine.SameType(f.Error.Type, engine.ErrorBase+engine.ErrConfiguration), engine.SameType(f.Error.Type, engine.ErrorBase+engine.ErrValidation):
		return admission.Unknown // it was not sent, or not heard
	}
	return admission.Healthy
}

// finish commits what came of an attempt.
func (d *Dispatcher) finish(ctx context.Context, j *Job, output json.RawMessage, failure *engine.Failure) error {
	switch {
	case failure != nil:
		return d.failed(ctx, j, failure)
	case j.command.Ack > 0:
		return d.Record.delivered(ctx, j)
	case j.command.Token == "":
		return d.Record.done(ctx, j)
	}
	return d.Record.answer(ctx, j, Payload(output), turn.Step, true)
}

// failed commits that an attempt had no result: when the next one is, or that it is over.
func (d *Dispatcher) failed(ctx context.Context, j *Job, f *engine.Failure) error {
	j.unknown, j.open = j.unknown || f.Unknown || f.Open && j.command.Ack > 0, j.open || f.Open
	delay, again := d.Performer.Backoff(j.failures+1, j.Key)
	retry := again && (f.Retry || j.unknown && f.Error.Status == 409) // of the same key, which an attempt before may be at still
	if j.command.Ack != 0 {
		retry = d.Repeats(f)
		delay, j.age = d.AckTimes(ctx, j.command, 0, j.failures+1)
	}
	if over, err := d.Record.overtaken(ctx, j); over || err != nil {
		return err
	}
	if retry && j.command.Token != "" {
		err := d.Record.answer(ctx, j, Failed(&f.Error, j.unknown, j.open), authors(j.command.Token, f.Error), false)
		if !errors.Is(err, errOwnRetry) && problem.CodeOf(err) != engine.CodeElsewhere { // where nobody knows its author's policy
			return err
		}
	}
	if retry {
		return retryCommit(ctx, func() error { return d.Record.later(ctx, j, max(delay, f.After), f.Error) })
	}
	if j.command.Token == "" {
		j.failures++
		return d.Record.undelivered(ctx, j, f.Error)
	}
	return d.Record.answer(ctx, j, Failed(&f.Error, j.unknown, j.open), turn.Step, true)
}

// errOwnRetry says that no policy of the author is for a failure, so that the node's own is.
var errOwnRetry = fmt.Errorf("the node tries again itself: %w", turn.ErrUntouched)

// authors gives a failure to the instance when a policy of its author retries it: there is one budget of retries, and
// that is the author's where there is one.
func authors(token string, e snapshot.Error) turn.Decision {
	return func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
		ok, err := engine.Retries(def, *snap, token, e, in)
		if err == nil && !ok {
			err = errOwnRetry
		}
		if err != nil {
			return nil, err
		}
		return turn.Step(def, snap, in)
	}
}

// Failed is what a TaskCompleted says about a command that has failed for good.
func Failed(e *snapshot.Error, unknown, open bool) json.RawMessage {
	b, _ := json.Marshal(struct { // plain data cannot fail
		Error   *snapshot.Error `json:"error"`
		Open    bool            `json:"open,omitempty"`
		Unknown bool            `json:"unknown,omitempty"`
	}{e, open, unknown})
	return b
}

// Payload is what a TaskCompleted says about a command that has a result.
func Payload(output json.RawMessage) json.RawMessage {
	if len(output) == 0 {
		output = json.RawMessage("null")
	}
	return slices.Concat([]byte(`{"output":`), output, []byte("}"))
}

// answer applies a result as the instance's next turn. When the turn cannot be decided, a final result goes to the
// signal queue, where the rules for failing messages hold.
func (r Record) answer(ctx context.Context, j *Job, result json.RawMessage, decide turn.Decision, final bool) error {
	now := r.Now()
	env := signal.Envelope{
		SignalID: j.command.Token + "/" + strconv.Itoa(j.attempt()), InstanceID: j.Instance, RuntimeProvider: signal.Provider,
		Type: signal.TaskCompleted, WaitingToken: j.command.Token, OccurredAt: now, Payload: result,
	}
	unknown := false
	return retryCommit(ctx, func() error {
		if unknown { // a result that was applied would be recorded once more, as stale
			if done, err := r.answered(ctx, j); done || err != nil {
				return err
			}
		}
		_, err := r.Turn(ctx, env, now, decide)
		unknown = unknown || errors.Is(err, store.ErrUnknown)
		var p *problem.Error
		if elsewhere := problem.CodeOf(err) == engine.CodeElsewhere; !errors.As(err, &p) || p.Kind == problem.Unavailable && !elsewhere || elsewhere && !final {
			return err
		}
		if body, e := env.Encode(); e == nil {
			return r.Writer.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}})
		}
		return err
	})
}

// later gives a command back and announces it again for after the delay.
func (r Record) later(ctx context.Context, j *Job, delay time.Duration, e snapshot.Error) error {
	note, commit := e.Title+": "+e.Detail, r.Writer.Commit
	if j.open && j.command.Ack == 0 {
		note = NoticeOpen + note
	} else if j.command.Ack > 0 {
		note = NoticeRetry + ": " + note
		commit = func(ctx context.Context, c store.Change) error { return r.Noted(ctx, j.command, NoticeRetry, c) }
	}
	change, err := r.Again(j, delay, store.Claim{Expect: r.Node, Attempts: j.failures + 1, Error: note, Delivered: j.delivered, Deliveries: j.deliveries})
	if err != nil {
		return err
	}
	if err = commit(ctx, change); errors.Is(err, store.ErrTaken) {
		return nil // the wait is gone: nobody wants the result any more
	}
	return err
}

// Again is the change that gives a command back by claim, and announces it for
// after the delay. The announcement is known by its due time, which is the row's.
func (r Record) Again(j *Job, delay time.Duration, claim store.Claim) (store.Change, error) {
	now := r.Now()
	due := now.Add(delay)
	if j.command.Ack != 0 && !j.since.IsZero() {
		now, due = j.since, slices.MinFunc([]time.Time{due, j.since.Add(cmp.Or(j.age, r.AckAge))}, time.Time.Compare)
	}
	due = due.Truncate(time.Microsecond) // as stores keep it
	body, err := signal.ForCommand(j.Instance, j.position, j.attempt(), now, due).Encode()
	claim.InstanceID, claim.Position, claim.NextAt, claim.Unknown = j.Instance, j.position, due, j.unknown
	return store.Change{
		Claims: []store.Claim{claim},
		Send:   []store.Send{{Queue: store.Commands, Body: body, Due: due}},
	}, err
}

// retryCommit repeats f while the store does not answer. What it commits is guarded,
// so a commit whose outcome is unknown may be tried again.
func retryCommit(ctx context.Context, f func() error) error {
	delay := 50 * time.Millisecond
	for {
		err := f()
		if err == nil || !transient(err) {
			return err
		}
		if !turn.Pause(ctx, delay) {
			return err
		}
		delay = min(2*delay, 5*time.Second)
	}
}

// transient reports whether the same call may succeed later without anything
// else having changed: whatever a database refuses, it may take when it is mended.
func transient(err error) bool {
	final := errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrLost) || errors.Is(err, store.ErrTaken) || errors.Is(err, store.ErrNotFound)
	return !final && (errors.Is(err, store.ErrUnknown) || problem.KindOf(err) == problem.Unavailable && problem.CodeOf(err) != engine.CodeElsewhere || problem.CodeOf(err) == "store.sql")
}

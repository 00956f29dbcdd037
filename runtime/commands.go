package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// job is a command that this node has claimed.
type job struct {
	instance string
	position int64
	command  engine.Command
	failures int  // attempts before this one, since the last delivery
	unknown  bool // an attempt may have done it without an answer

	// Of a command that asks for an acknowledgement.
	deliveries int // so far
	delivered  time.Time
	note       string // of the claim; what the row says last

	to     engine.Destination
	late   time.Time // when it is given up if it still waits for a place
	begun  bool      // the attempt is counted in the row
	inside bool      // of an event: it has been published to the instances

	// Under the lock of the dispatcher:
	target *target
	queued bool   // it stands in line
	placed bool   // it has a place at its destination
	probe  bool   // it is the one that tries whether the destination works again
	why    string // what it waited for when it was given up

	// Under the lock of the runtime, while the node performs it:
	abort  context.CancelFunc // ends the attempt under way; nil = there is none, or nobody waits for its result
	rounds int                // of the watch, since the attempt began
	next   *job               // another performance of the same command by this node

	doubted bool // it is not known whether the node has claimed it
}

// attempt is the number of the attempt that comes next, from 1.
func (j *job) attempt() int { return j.failures + j.deliveries + 1 }

// place is where a command is: the node's own map goes by it, for commands that
// repeat one effect have one key.
type place struct {
	instance string
	position int64
}

func (j *job) at() place { return place{j.instance, j.position} }

// key is the idempotency key, as the command has it: the same on every attempt,
// on every node. Commands made before they had one keep that of their place.
func (j *job) key() string {
	if j.command.Key == "" {
		return j.instance + "/" + strconv.FormatInt(j.position, 10)
	}
	return j.command.Key
}

// newJob is a command of an instance's stream.
func newJob(instance string, position int64, c engine.Command) *job {
	c.Instance, c.Position = instance, position
	return &job{instance: instance, position: position, command: c}
}

// reserve finds a place for a command before it is claimed, or room to wait for
// one, so that a node never claims more than it can hold. It may wait from since
// on, for as long as its definition or the node says.
func (r *Runtime) reserve(j *job, since time.Time) bool {
	j.to = r.destination(j)
	if j.command.GiveUp == 0 {
		j.late = since.Add(r.GiveUpAfter)
	} else {
		j.late = since.Add(j.command.GiveUp)
	}
	return r.dispatch.reserve(j)
}

// begin counts the attempts that a commit begins: commands that wait for a
// place are counted when they have one.
func begin(stream []projections.Entry, jobs []*job) {
	for _, j := range jobs {
		for i := range stream {
			if stream[i].Position == j.position && j.begun {
				stream[i].Attempts = 1
			}
		}
	}
}

// launch has commands performed that this node has claimed.
func (r *Runtime) launch(jobs ...*job) {
	for _, j := range jobs {
		r.track(j)
		if !r.dispatch.launch(j) {
			r.untrack(j) // the node stops, and leaves it to the next
		}
	}
}

// start performs a command that has a place, on a worker that has nothing to do
// or on a new one. Workers stay: their stacks have grown to what a turn needs,
// and growing a new one costs as much as the turn.
func (r *Runtime) start(j *job) {
	select {
	case r.jobs <- j:
	default:
		go r.worker(r.work, j)
	}
}

// worker performs one command after the other, all in one context: a context of
// its own for each would cost more than the rest of the work. An attempt that
// is aborted ends it, and with it the worker.
func (r *Runtime) worker(work context.Context, j *job) {
	ctx, abort := context.WithCancel(work)
	defer abort()
	ctx, answer := r.Memory.Answers.Hold(ctx) // it is in memory until it is committed
	for {
		moved := r.perform(ctx, abort, j)
		answer.Release()
		if !moved {
			r.untrack(j)
			r.dispatch.done(j)
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case j = <-r.jobs:
		case <-ctx.Done():
			return
		}
	}
}

// perform makes one attempt and commits what came of it: the result as the
// instance's next turn, or the failure and the time of the next attempt. It
// reports whether the command goes on at another destination.
func (r *Runtime) perform(ctx context.Context, abort context.CancelFunc, j *job) (moved bool) {
	room, err := r.Memory.Calls.Take(ctx, int64(callFactor*j.size()))
	if err != nil { // which is no attempt
		if ctx.Err() == nil {
			j.begun = false
			r.giveBack(ctx, j)
		}
		return false
	}
	defer room.Release()
	if wanted, err := r.began(ctx, j); !wanted || err != nil {
		if err != nil && ctx.Err() == nil {
			r.Log.Error("command could not be begun; it will be performed again", "instance", j.instance, "command", j.position, "error", err)
			r.giveBack(ctx, j)
		}
		return false
	}
	output, failure := r.attempted(ctx, abort, j)
	if ctx.Err() != nil {
		return false // withdrawn; or given up at shutdown: performed again elsewhere
	}
	r.dispatch.left(j, healthOf(failure))
	if failure == nil && r.goesOn(j) {
		if r.dispatch.move(j, r.Performer.Destination(j.command)) {
			return true
		}
		j.begun = false // it has not been sent
		r.giveBack(ctx, j)
		return false
	}
	err = r.finish(ctx, j, output, failure)
	if err == nil || ctx.Err() != nil {
		return false
	}
	r.Log.Error("the result of a command could not be committed; it will be performed again",
		"instance", j.instance, "command", j.position, "error", err)
	lost := snapshot.Error{Title: "Result not committed", Detail: err.Error()}
	if err := r.insist(ctx, func() error { return r.later(ctx, j, time.Minute, lost) }); err != nil && ctx.Err() == nil {
		r.Log.Error("command could not be given back", "instance", j.instance, "command", j.position, "error", err)
	}
	return false
}

// healthOf is what an attempt says about its destination: an error that is not
// the destination's own is an answer.
func healthOf(f *engine.Failure) health {
	switch {
	case f == nil:
		return healthy
	case f.Ill:
		return ill
	case f.Retry, engine.SameType(f.Error.Type, engine.ErrorBase+engine.ErrConfiguration), engine.SameType(f.Error.Type, engine.ErrorBase+engine.ErrValidation):
		return unknownHealth // it was not sent, or not heard
	}
	return healthy
}

// finish commits what came of an attempt.
func (r *Runtime) finish(ctx context.Context, j *job, output json.RawMessage, failure *engine.Failure) error {
	switch {
	case failure != nil:
		return r.failed(ctx, j, failure)
	case j.command.Ack > 0:
		return r.delivered(ctx, j)
	case j.command.Token == "":
		return r.done(ctx, j)
	}
	return r.answer(ctx, j, payload(output, nil), step)
}

// failed commits that an attempt had no result: the time of the next one, or
// the end of the command.
func (r *Runtime) failed(ctx context.Context, j *job, f *engine.Failure) error {
	j.unknown = j.unknown || f.Unknown
	delay, again := r.Performer.Backoff(j.failures+1, j.key())
	if f.Retry && again && j.command.Token != "" {
		if over, err := r.overtaken(ctx, j); over || err != nil {
			return err
		}
		err := r.answer(ctx, j, j.failure(&f.Error), authors(j.command.Token, f.Error))
		if !errors.Is(err, errOwnRetry) {
			return err
		}
	}
	if f.Retry && again {
		return r.insist(ctx, func() error { return r.later(ctx, j, max(delay, f.After), f.Error) })
	}
	if over, err := r.overtaken(ctx, j); over || err != nil {
		return err
	}
	if j.command.Token == "" {
		return r.undelivered(ctx, j, f.Error)
	}
	return r.answer(ctx, j, j.failure(&f.Error), step)
}

// errOwnRetry says that no policy of the author is for a failure, so that the
// node's own is.
var errOwnRetry = errors.New("the node tries again itself")

// authors gives a failure to the instance when a policy of its author retries
// it: there is one budget of retries, and that is the author's where there is
// one.
func authors(token string, e snapshot.Error) decision {
	return func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
		ok, err := engine.Retries(def, *snap, token, e, in)
		if err == nil && !ok {
			err = errOwnRetry
		}
		if err != nil {
			return nil, err
		}
		return step(def, snap, in)
	}
}

// failure is what a TaskCompleted says about a command that has failed for good.
func (j *job) failure(e *snapshot.Error) json.RawMessage {
	if !j.unknown {
		return payload(nil, e)
	}
	b, _ := json.Marshal(map[string]any{"error": e, "unknown": true}) // plain data cannot fail
	return b
}

// payload is what a TaskCompleted says about a command.
func payload(output json.RawMessage, e *snapshot.Error) json.RawMessage {
	if e != nil {
		b, _ := json.Marshal(map[string]any{"error": e}) // plain data cannot fail
		return b
	}
	if len(output) == 0 {
		output = json.RawMessage("null")
	}
	b := make([]byte, 0, len(output)+12)
	b = append(b, `{"output":`...)
	b = append(b, output...)
	return append(b, '}')
}

// answer applies a result as the instance's next turn. When the turn cannot be
// decided, the result goes to the signal queue, where the rules for failing
// messages hold.
func (r *Runtime) answer(ctx context.Context, j *job, result json.RawMessage, decide decision) error {
	now := r.Now()
	env := signal.Envelope{
		SignalID: j.command.Token + "/" + strconv.Itoa(j.attempt()), InstanceID: j.instance, RuntimeProvider: signal.Provider,
		Type: signal.TaskCompleted, WaitingToken: j.command.Token, OccurredAt: now, Payload: result,
	}
	unknown := false
	return r.insist(ctx, func() error {
		if unknown { // a result that was applied would be recorded once more, as stale
			if done, err := r.answered(ctx, j); done || err != nil {
				return err
			}
		}
		_, err := r.turn(ctx, r.Store, env, now, decide)
		unknown = unknown || errors.Is(err, store.ErrUnknown)
		var p *problem.Error
		if !errors.As(err, &p) || p.Kind == problem.Unavailable {
			return err
		}
		body, encodeErr := env.Encode()
		if encodeErr != nil {
			return err
		}
		return r.Store.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}})
	})
}

// later gives a command back and announces it again for after the delay.
func (r *Runtime) later(ctx context.Context, j *job, delay time.Duration, e snapshot.Error) error {
	note := e.Title + ": " + e.Detail
	if j.command.Ack > 0 {
		note = noticeRetry + ": " + note
	}
	change, err := r.again(j, delay, store.Claim{
		Expect: r.Store.Node(), Attempts: j.failures + 1, Error: note, Delivered: j.delivered, Deliveries: j.deliveries,
	})
	if err != nil {
		return err
	}
	err = r.Store.Commit(ctx, change)
	if errors.Is(err, store.ErrTaken) {
		return nil // the wait is gone: nobody wants the result any more
	}
	return err
}

// again is the change that gives a command back by claim, and announces it for
// after the delay. The announcement is known by its due time, which is the
// row's.
func (r *Runtime) again(j *job, delay time.Duration, claim store.Claim) (store.Change, error) {
	now := r.Now()
	due := now.Add(delay).Truncate(time.Microsecond) // as stores keep it
	body, err := signal.ForCommand(j.instance, j.position, j.attempt(), now, due).Encode()
	claim.InstanceID, claim.Position, claim.NextAt, claim.Unknown = j.instance, j.position, due, j.unknown
	return store.Change{
		Claims: []store.Claim{claim},
		Send:   []store.Send{{Queue: store.Commands, Body: body, Due: due}},
	}, err
}

// insist repeats f while the store does not answer. What it commits is guarded,
// so a commit whose outcome is unknown may be tried again.
func (r *Runtime) insist(ctx context.Context, f func() error) error {
	delay := 50 * time.Millisecond
	for {
		err := f()
		if err == nil || !transient(err) {
			return err
		}
		if !sleep(ctx, delay) {
			return err
		}
		delay = min(2*delay, 5*time.Second)
	}
}

// transient reports whether the same call may succeed later without anything
// else having changed.
func transient(err error) bool {
	if errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrLost) || errors.Is(err, store.ErrTaken) || errors.Is(err, store.ErrNotFound) {
		return false
	}
	return errors.Is(err, store.ErrUnknown) || problem.KindOf(err) == problem.Unavailable
}

// sleep waits for d; it reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// announced handles a message of the command queue: claim, then perform.
func (r *Runtime) announced(ctx, stop context.Context, d store.Delivery, env signal.Envelope) error {
	position, err := signal.CommandPosition(env.Payload)
	if err != nil {
		return problem.Wrap(err, problem.Invalid, "signal.invalid", "announcement of a command")
	}
	row, ok, err := r.entry(ctx, env.InstanceID, position)
	if err != nil {
		return err
	}
	if !ok || row.Processed == nil {
		return problem.New(problem.NotFound, "command.unknown", "instance %s has no command at position %d", env.InstanceID, position)
	}
	if *row.Processed || row.ClaimedBy != "" {
		return d.Commit(ctx, store.Change{}) // done with, or performed by somebody
	}
	j, err := jobOf(row)
	if err != nil {
		return err
	}
	if over, err := r.outdated(ctx, d, env, j, row); over || err != nil {
		if err == nil {
			err = d.Commit(ctx, store.Change{})
		}
		return err
	}
	if !r.can(j.command.Target) {
		return r.pass(ctx, d, j)
	}
	if _, again := r.Performer.Backoff(j.failures, j.key()); j.failures > 0 && !again {
		return r.exhausted(ctx, d, j, row.LastError)
	}
	if j.command.Ack > 0 && j.deliveries >= r.AckMax {
		return r.unacknowledged(ctx, d, j)
	}
	if stop.Err() != nil {
		return d.Release(ctx, context.Canceled)
	}
	if !r.reserve(j, env.OccurredAt) {
		return r.put(ctx, d, j, row)
	}
	if err := r.claim(ctx, d, j, row); err != nil {
		if errors.Is(err, store.ErrUnknown) {
			r.doubt(j)
			return err
		}
		r.dispatch.cancel(j)
		if errors.Is(err, store.ErrTaken) {
			return d.Commit(ctx, store.Change{})
		}
		return err
	}
	r.remind(j, row)
	r.launch(j)
	return nil
}

// entry is what an instance's stream has at a position; ok is false when that is
// nothing.
func (r *Runtime) entry(ctx context.Context, instance string, position int64) (row projections.Entry, ok bool, err error) {
	rows, err := r.Store.Stream(ctx, instance, position-1, 1)
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	if err != nil || len(rows) == 0 || rows[0].Position != position {
		return projections.Entry{}, false, err
	}
	return rows[0], true, nil
}

// jobOf is a command as its row has it.
func jobOf(row projections.Entry) (*job, error) {
	var c engine.Command
	err := json.Unmarshal(row.Data, &c)
	j := newJob(row.InstanceID, row.Position, c)
	j.resume(row)
	if err != nil {
		return j, problem.Wrap(err, problem.Internal, "command.corrupt", "command %d of %s", j.position, j.instance)
	}
	return j, nil
}

// resume takes from the row what attempts before have come to.
func (j *job) resume(row projections.Entry) {
	j.unknown = row.Unknown
	j.failures, j.deliveries, j.delivered, j.note = row.Attempts, row.Deliveries, row.DeliveredAt, row.LastError
}

func (r *Runtime) claim(ctx context.Context, d store.Delivery, j *job, row projections.Entry) error {
	if awaiting(row) {
		j.note = fmt.Sprintf("%s: delivery %d was not acknowledged within %s", noticeReminder, j.deliveries, j.command.Ack)
	}
	return d.Commit(ctx, store.Change{Claims: []store.Claim{j.hold(r.Store.Node(), "")}})
}

// hold is the claim of a node on a command, with the attempt that has begun.
func (j *job) hold(node, expect string) store.Claim {
	c := store.Claim{
		InstanceID: j.instance, Position: j.position, Expect: expect, Owner: node, Attempts: j.failures, Error: j.note,
		Delivered: j.delivered, Deliveries: j.deliveries, Unknown: j.unknown,
	}
	if j.begun {
		c.Attempts++
	}
	return c
}

// exhausted answers a command whose attempts are used up without an answer:
// each was lost with the process that made it.
func (r *Runtime) exhausted(ctx context.Context, d store.Delivery, j *job, last string) error {
	e := snapshot.Error{
		Type: engine.ErrorBase + engine.ErrRuntime, Status: 500, Title: "Attempts used up",
		Detail: strings.TrimSuffix(fmt.Sprintf("%d attempts were lost or failed: %s", j.failures, last), ": "),
	}
	return r.giveUp(ctx, d, j, undeliveredCode(j), e)
}

// giveUp ends a command that will not be performed, by an error for who waits
// for it, else by a dead letter.
func (r *Runtime) giveUp(ctx context.Context, d store.Delivery, j *job, reason string, e snapshot.Error) error {
	if j.command.Token == "" {
		if err := d.Commit(ctx, r.abandon(j, store.Claim{}, reason, e)); err != nil {
			return err
		}
		r.metrics.deadLetters.WithLabelValues(string(store.Commands)).Inc()
		return nil
	}
	if err := r.answer(ctx, j, j.failure(&e), step); err != nil {
		return err
	}
	return d.Commit(ctx, store.Change{})
}

// passMax bounds how often a command that no node can perform is offered again
// (about half an hour); then it fails with a configuration error.
const passMax = 30

// pass leaves a command to a node that can perform it.
func (r *Runtime) pass(ctx context.Context, d store.Delivery, j *job) error {
	m := d.Message()
	if m.Attempts >= passMax {
		e := snapshot.Error{
			Type: engine.ErrorBase + engine.ErrConfiguration, Status: 400, Title: "No performer",
			Detail: fmt.Sprintf("no node can perform %q", j.command.Target),
		}
		return r.giveUp(ctx, d, j, undeliveredCode(j), e)
	}
	due := r.Now().Add(r.backoff(m.Attempts+1, j.key()))
	return d.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Commands, Body: m.Body, Due: due, Priority: m.Priority, Attempts: m.Attempts + 1}}})
}

package turn

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Begin decides and commits the first turn of an instance, with an incarnation that no other has. Its errors are the
// catalogue's, the engine's and store.ErrDuplicate where the instance, or one of its start key, is there.
func (d *Decider) Begin(ctx context.Context, to store.Writer, env signal.Envelope, start signal.Start, now time.Time, incarnation string) (c Committed, err error) {
	for n := 0; n == 0 || n < StaleMax && errors.Is(err, store.ErrStale); n++ { // while policies are published
		c, err = d.begin(ctx, to, env, start, now, incarnation)
	}
	return c, err
}

func (d *Decider) begin(ctx context.Context, to store.Writer, env signal.Envelope, start signal.Start, now time.Time, incarnation string) (Committed, error) {
	def, err := d.Definitions.Find(ctx, start.Definition, start.Version)
	if err != nil {
		return Committed{}, err
	}
	room, err := d.Room(ctx, &snapshot.Snapshot{}, len(start.Input))
	if err != nil {
		return Committed{}, err
	}
	defer room.Release()
	t := turn{to: to, startKey: start.StartKey, began: d.Now()}
	t.in = engine.Input{Signal: env, Now: now, Key: d.Key, Epoch: d.Epoch, Incarnation: incarnation, Limits: d.Limits, Engine: d.Engine, Lifecycle: d.Lifecycle}
	if t.out, err = engine.Begin(def, env.InstanceID, start, t.in); err != nil {
		return Committed{}, d.Refused(ctx, def, err)
	}
	d.Decided(t.out, signal.Envelope{})
	c, err := d.commit(ctx, &t)
	if IsOutput(err) {
		var fault *engine.Outcome
		if fault, err = engine.FaultFirst(def, t.out.Snapshot, engine.Unwritten(err), t.in); err == nil {
			c, err = d.writeFault(ctx, &t, fault)
		}
	}
	return c, err
}

// write commits a turn over the version it was decided on, with the messages of its signals. When it is that of one
// signal alone and cannot be written, the instance faults instead.
func (d *Decider) write(ctx context.Context, t *turn) (Committed, error) {
	t.to = d.source(t.signals)
	c, err := d.commit(ctx, t)
	if len(t.signals) == 1 && IsOutput(err) {
		c, err = d.faulted(ctx, t, err)
	}
	for _, s := range t.signals {
		s.Left = err == nil && s.Delivery != nil && s.Delivery != t.to && !d.Joins
	}
	return c, err
}

// commit writes the outcome of a turn, and claims for this node what it can of the commands.
func (d *Decider) commit(ctx context.Context, t *turn) (Committed, error) {
	buffer, c := buffers.Get().(*[]byte), &Committed{Outcome: t.out, Claims: d.Claims()}
	change, err := store.Change{Snapshot: &t.out.Snapshot}, error(nil)
	if goOn := d.Inside(t.out, t.in); goOn == nil {
		change, err = d.change(ctx, t, c, buffer)
	} else {
		change.Over, _ = t.messages(false)
		change.Inside = func(do store.Perform) (whole store.Change, err error) {
			c.Claims.Cancel()
			c.Claims = d.Claims()
			c.Outcome, err = goOn(do, func(s *Signal, on *snapshot.Snapshot) (*engine.Outcome, error) {
				return d.once(ctx, &turn{}, on, s, false)
			})
			if err == nil {
				whole, err = d.change(ctx, t, c, buffer)
			}
			return whole, err
		}
	}
	if err == nil {
		err = unwritable(t.to.Commit(ctx, change))
	}
	d.Metrics.Over(Made{t.began, t.to, t.prev, t.signals, c.Outcome, err})
	switch {
	case errors.Is(err, store.ErrUnknown):
		d.Cache.Drop(t.out.Snapshot.InstanceID)
		c.Unknown = true
		return *c, err
	case err != nil:
		c.Claims.Cancel()
		return Committed{}, err
	}
	*t.out, c.Outcome = *c.Outcome, t.out
	d.Cache.Put(&t.out.Snapshot, len(*buffer))
	if cap(*buffer) <= bufferMax {
		buffers.Put(buffer)
	}
	return *c, nil
}

// buffers are memory for encoded snapshots whose commits are over. After an error a store may still be at it.
var buffers = sync.Pool{New: func() any { return new(make([]byte, 0, 2048)) }}

// bufferMax is the size up to which a buffer is kept for the next turn.
const bufferMax = 512 << 10

// change is everything that a turn writes, with its snapshot encoded in a buffer.
func (d *Decider) change(ctx context.Context, t *turn, c *Committed, buffer *[]byte) (store.Change, error) {
	out, now := c.Outcome, d.Now()
	encoded, err := out.Snapshot.EncodeTo((*buffer)[:0])
	if err != nil {
		return store.Change{}, Output(err)
	}
	*buffer = encoded
	rows, err := projections.Fold(t.prev, out, t.startKey, func(e *engine.Entry) (node string, attempts int) {
		claimed, begun := c.Claims.Claim(out.Snapshot.InstanceID, e, now)
		if claimed {
			node = d.Node
		}
		if begun {
			attempts = 1
		}
		return node, attempts
	})
	if err != nil {
		return store.Change{}, Output(err)
	}
	c.Rows = rows
	change := store.Change{
		Snapshot: &out.Snapshot, Encoded: encoded, Rows: rows,
		Runtime: store.Runtime{LastSignalID: t.in.Signal.SignalID, ExecutedBy: d.Node, ExecutedAt: now},
	}
	change.Over, change.Also = t.messages(d.Joins)
	if err := d.Before(ctx, out); err != nil {
		return change, err
	}
	if change.Send, err = Sends(rows, out, now); err != nil {
		return change, Output(err)
	}
	for _, s := range t.signals {
		if s.Amend != nil {
			s.Amend(&change)
		}
	}
	return change, d.Amend(ctx, t.prev, out, &change)
}

// messages are the version that a turn was decided on and the messages its commit consumes beside its delivery's.
func (t *turn) messages(joins bool) (over int64, also []store.Message) {
	for _, s := range t.signals {
		if joins && s.Delivery != nil && s.Delivery != t.to {
			also = append(also, s.Delivery.Message())
		}
	}
	if over = -1; t.prev != nil {
		over = t.prev.Version
	}
	return over, also
}

// Sends are the messages of a commit: the turn's own, and an announcement of every command that nobody claimed.
func Sends(rows projections.Rows, outcome *engine.Outcome, now time.Time) ([]store.Send, error) {
	out := make([]store.Send, 0, len(outcome.Send))
	for _, m := range outcome.Send {
		body, err := m.Envelope.Encode()
		if err != nil {
			return nil, err
		}
		send := store.Send{Queue: store.Signals, Body: body, Due: m.Due}
		if t := m.Envelope.Type; !m.Due.IsZero() && t != signal.InternalContinue && t != signal.InternalContinueAll {
			send.Queue = store.Schedule
		}
		out = append(out, send)
	}
	for _, e := range rows.Stream {
		if e.Processed == nil || *e.Processed || e.ClaimedBy != "" {
			continue
		}
		body, err := signal.ForCommand(e.InstanceID, e.Position, 0, now, time.Time{}).Encode()
		if err != nil {
			return nil, err
		}
		out = append(out, store.Send{Queue: store.Commands, Body: body})
	}
	return out, nil
}

// ErrLate says that a turn of an instance that has ended cannot be written, and need not be: what came late means
// nothing.
var ErrLate = errors.New("turn: the instance has ended")

// faulted faults an instance, when what its turn wants to write cannot be written, in place of that turn: the message
// is consumed, nothing else of the turn is done. One that has faulted already cannot fault again, and what it cannot
// keep is left to an operator.
func (d *Decider) faulted(ctx context.Context, t *turn, cause error) (Committed, error) {
	prev, out := t.prev, t.out
	switch {
	case prev.Status.Closed() && len(out.Send) == 0:
		return Committed{}, ErrLate
	case out.Disposition == engine.Buffered: // it asks for nothing but to be kept
		return Committed{}, problem.New(problem.TooLarge, "limit.buffer", "instance %s has no room to keep the signal: %v", prev.InstanceID, cause)
	case prev.Status == snapshot.Faulted || prev.Status.Closed():
		return Committed{}, &outputError{problem.Wrap(cause, problem.Conflict, "instance.full", "instance %s is %s and has no room for the signal", prev.InstanceID, prev.Status).
			WithHint("cancel it, and let another do its work")}
	}
	in := t.in
	for {
		fault, err := engine.FaultWith(*prev, engine.Unwritten(cause), in)
		if err != nil {
			return Committed{}, err
		}
		c, err := d.writeFault(ctx, t, fault)
		var end engine.ChildEnd
		if problem.CodeOf(err) != codeUnwritable || in.Signal.Type != signal.SubWorkflowCompleted || jsonv2.Unmarshal(in.Signal.Payload, &end) != nil || len(end.Compensations) == 0 {
			return c, err
		}
		end.Output, end.Compensations = nil, nil // there is no room for what undoes the child
		in.Signal.Payload, _ = json.Marshal(end) // JSON already
	}
}

const codeUnwritable = "instance.unwritable"

// writeFault writes the turn that faults an instance in place of t. The author has no part in what that contains:
// that it cannot be written is our own fault, but for a value that the database never takes, which no waiting mends.
func (d *Decider) writeFault(ctx context.Context, t *turn, fault *engine.Outcome) (Committed, error) {
	instead := *t
	instead.out = fault
	c, err := d.commit(ctx, &instead)
	if IsOutput(err) && problem.CodeOf(err) == "store.value" {
		return c, problem.New(problem.Invalid, "store.value", "instance %s cannot be faulted: %v", fault.Snapshot.InstanceID, err)
	} else if IsOutput(err) {
		return c, problem.New(problem.Internal, codeUnwritable, "instance %s cannot be faulted: %v", fault.Snapshot.InstanceID, err)
	}
	if err == nil {
		*t.out = *fault
	}
	return c, err
}

// outputError is an error of what a turn writes, found after the decision. The message that led to it is sound.
type outputError struct{ Cause error }

func (e *outputError) Error() string { return e.Cause.Error() }
func (e *outputError) Unwrap() error { return e.Cause }

// IsOutput reports whether an error is of what a turn writes.
func IsOutput(err error) bool { return err != nil && errors.As(err, new(*outputError)) }

// Output marks an error of what a turn writes as such, where it is not ours.
func Output(err error) error {
	if err == nil {
		return nil
	}
	if k := problem.KindOf(err); k == problem.Invalid || k == problem.TooLarge {
		return &outputError{err}
	}
	return err
}

// unwritable marks the errors with which a store refuses for good what a turn writes, as too large or as no value of
// its column; with any other, the store itself is in trouble.
func unwritable(err error) error {
	switch problem.CodeOf(err) {
	case "limit.stream", "signal.too-large", "store.too-big", "store.value":
		return Output(err)
	}
	return err
}

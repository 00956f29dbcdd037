package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/dispatch"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// consume is one worker: receive, handle, again, until stop ends. A message
// once taken is finished whatever happens to stop, as long as ctx lasts.
func (r *Runtime) consume(ctx, stop context.Context, q store.Queue) error {
	failures := 0
	for {
		d, err := r.Store.Receive(stop, q, r.mail.arrived)
		if err != nil && stop.Err() != nil {
			return nil
		}
		if errors.Is(err, store.ErrClosed) {
			return fmt.Errorf("runtime: queue %s: %w", q, err)
		}
		if err != nil {
			failures++
			delay := r.backoff(failures, string(q))
			r.Log.Error("queue cannot be read", "queue", q, "error", err, "again", delay)
			dispatch.Sleep(stop, delay)
			continue
		}
		failures = 0
		r.hands.take(d)
		r.handle(ctx, stop, d)
		r.hands.leave(d)
	}
}

// handle gives one delivery its end: committed, retried later, or dead. What is
// for an instance goes through its mailbox, in the order of the queue.
func (r *Runtime) handle(ctx, stop context.Context, d store.Delivery) {
	m := d.Message()
	env, p, err := r.read(ctx, stop, d)
	r.mail.sort(m, p) // whatever came of it: those behind wait for this one
	switch {
	case m.Crashes >= r.CrashMax:
		r.bury(ctx, stop, d, problem.New(problem.Internal, "message.crash-loop", "%d processes died while they handled the message", m.Crashes))
		return
	case p != nil:
		r.attend(ctx, p)
		if err = p.Err; p.settled {
			return
		}
	case err == nil:
		err = r.guarded(d, func() error { return r.deliver(ctx, stop, d, env) })
	}
	if env.Type == signal.CancelRequest && problem.CodeOf(err) == "instance.unknown" && m.Attempts >= r.RetryMax {
		err = d.Commit(ctx, store.Change{}) // a child that is not there after all retries never began
	}
	switch f := r.fate(m, err); f {
	case ended:
	case released:
		r.release(ctx, stop, resend{d: d, cause: err})
	case buried:
		if errors.Is(err, store.ErrTaken) {
			err = problem.Wrap(err, problem.Conflict, "command.settled", "the message settles a command that is not open")
		}
		r.bury(ctx, stop, d, err)
	default:
		r.sendLater(ctx, stop, resend{d: d, cause: err, due: r.Now().Add(r.backoff(f.attempts(m), m.ID)), attempts: f.attempts(m)})
	}
}

// read is what a message says, and what it is in the mailbox of its instance:
// nil when it goes into none.
func (r *Runtime) read(ctx, stop context.Context, d store.Delivery) (env signal.Envelope, p *post, err error) {
	m := d.Message()
	defer func() {
		if v := recover(); v != nil {
			p, err = nil, r.turns.Panicked(v, "message", m.ID)
		}
	}()
	if env, err = signal.Decode(m.Body); err != nil || m.Crashes >= r.CrashMax {
		return env, nil, err
	}
	if p = r.posted(ctx, d, env); p != nil {
		p.stop, p.wake = stop, make(chan bool, 1)
	}
	return env, p, nil
}

// posted is what a message is in the mailbox of its instance; nil when it is
// not for an instance, or comes too early.
func (r *Runtime) posted(ctx context.Context, d store.Delivery, env signal.Envelope) *post {
	m := d.Message()
	now := m.EnqueuedAt
	if m.DueAt.After(now) {
		now = m.DueAt
	}
	p := &post{Signal: turn.Signal{Envelope: env, Now: now, Delivery: d, Decide: turn.Step}}
	switch {
	case m.Queue == store.Commands, env.Type == signal.InternalContinue && env.WaitingToken == "", r.early(m, env) > 0:
		return nil
	case env.Type == signal.StartRequest:
		p.solo = func(ctx context.Context) error { return r.requested(ctx, d, env, now) }
	case env.Type == signal.SubWorkflowCompleted:
		p.solo = func(ctx context.Context) error {
			var err error
			if p.Envelope, err = r.fetch(ctx, d, env); err == nil {
				p.noted = true
				r.serve(ctx, []*post{p})
				err = p.Err
			}
			return err
		}
		if !storedOutput(env) {
			p.solo = nil
		}
	case env.Type == signal.TaskCompleted:
		r.handed(ctx, p)
	}
	return p
}

// early is how long a message has come before its time: the queue's clock ran
// ahead (design 4.8).
func (r *Runtime) early(m store.Message, env signal.Envelope) time.Duration {
	if env.DueAt.IsZero() || m.Queue != store.Schedule {
		return 0
	}
	return env.DueAt.Sub(r.Now())
}

// guarded runs f with the message noted in the ledger. A panic is a problem like
// any other.
func (r *Runtime) guarded(d store.Delivery, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = r.turns.Panicked(v, "message", d.Message().ID)
		}
	}()
	if d.Message().Queue != store.Commands { // whose workers wait for a place
		r.handlers <- struct{}{}
		defer func() { <-r.handlers }()
	}
	r.Store.Enter(d)
	defer r.Store.Leave(d)
	return f()
}

// deliver gives a message that goes into no mailbox to whom it concerns.
func (r *Runtime) deliver(ctx, stop context.Context, d store.Delivery, env signal.Envelope) error {
	m := d.Message()
	switch {
	case m.Queue == store.Commands && env.Type != signal.StartRequest:
		return r.Announced(ctx, stop, d, env)
	case env.Type == signal.InternalContinue && env.WaitingToken == "":
		return r.look(ctx, d, env)
	}
	// Put it back for the remainder.
	return d.Commit(ctx, store.Change{Send: []store.Send{{Queue: m.Queue, Body: m.Body, Due: env.DueAt, Priority: m.Priority, Attempts: m.Attempts}}})
}

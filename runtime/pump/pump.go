// Package pump goes from a queue to a turn: it receives messages, gives each to the mailbox of its instance or to whom
// it concerns, and ends it: committed, sent again for later, given back, or a dead letter.
//
// What is done with a message is in a table of handlers by the type of its signal; what is not in it is a turn of the
// instance. The pump knows no schedules, tasks, children nor events: they are entries of the table.
package pump

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Handler says what is done with the messages of a type. A nil field is what is done with most.
type Handler struct {
	// For says which signals of its type Outside, Alone, Complete and Bind are for; nil = all.
	For func(env signal.Envelope) bool
	// Outside handles a message that goes into no mailbox.
	Outside func(ctx context.Context, d store.Delivery, env signal.Envelope) error
	// Alone handles a message that came at now, instead of a turn, while its instance's mailbox serves nobody else.
	Alone func(ctx context.Context, d store.Delivery, env signal.Envelope, now time.Time) error
	// Complete adds to a signal what its message left out. It is called as Alone is; a turn follows.
	Complete func(ctx context.Context, d store.Delivery, env signal.Envelope) (signal.Envelope, error)
	// Bind may change how a signal is decided and amended.
	Bind func(ctx context.Context, s *turn.Signal)
	// Moot says that a message which fails so after all its retries has nothing to do any more.
	Moot func(err error) bool
	// Refusal is what goes out with the dead letter of a message, if anything does.
	Refusal func(env signal.Envelope, cause error) (store.Send, bool)
}

// Config wires a pump. All of it is required, but for Handlers and Suspend.
type Config struct {
	Queue   store.Receiver
	Ledger  store.Ledger
	Joins   bool // a commit consumes several deliveries
	Streams projections.StreamReader
	Node    string // its name
	Turns   *turn.Decider
	Retries *Retries
	Log     *slog.Logger
	Now     func() time.Time
	Metrics Metrics

	Handlers map[signal.Type]*Handler
	// OnCommand handles a message of the command queue. Its worker waits for a place as long as stop lasts.
	OnCommand func(ctx, stop context.Context, d store.Delivery, env signal.Envelope) error
	// Committed acts on what a turn has committed.
	Committed func(c turn.Committed)
	// First is the problem by which the first of signals that are one was refused, or nil.
	First func(ctx context.Context, env signal.Envelope) error
	// TakesNumber decides that a duplicate takes its number, or is ErrUntouched.
	TakesNumber turn.Decision
	// Suspend suspends the instance of a dead letter; nil = it is left as it is.
	Suspend func(ctx context.Context, instance string) error

	Hands    Hands // what the workers have in hand
	AtOnce   int   // messages handled at once, whatever their queue
	CrashMax int   // processes a message may kill before it is a dead letter
}

// Metrics counts what becomes of messages.
type Metrics interface {
	Retried(q store.Queue, by string) // by whose fault
	DeadLetter(q store.Queue)
}

// Hands is told of each delivery that a worker takes, and that it has left it.
type Hands interface {
	Take(d store.Delivery)
	Leave(d store.Delivery)
}

// Pump receives the messages of a node, and has the mailboxes of its instances. Many goroutines may call its methods.
type Pump struct {
	Config
	server *server
	ends   *ends
}

// New makes a pump that receives nothing yet.
func New(c Config) *Pump {
	u := &Pump{Config: c}
	u.ends = &ends{&u.Config}
	u.server = &server{
		Config: &u.Config, ends: u.ends, mail: newMailboxes(), lines: newLines(), slots: make(chan struct{}, c.AtOnce), suspects: make(chan struct{}, 1),
	}
	return u
}

// Accept says when turns that have begun are given up: when work ends.
func (u *Pump) Accept(work context.Context) { u.server.work.Store(&work) }

// handler is how the table has a signal delivered; nil = as most.
func (u *Pump) handler(env signal.Envelope) *Handler {
	h := u.Handlers[env.Type]
	if h == nil || h.For != nil && !h.For(env) {
		return nil
	}
	return h
}

// moot says that a signal which failed for the last time has nothing to do any more.
func (u *Pump) moot(env signal.Envelope, err error) bool {
	h := u.Handlers[env.Type]
	return h != nil && h.Moot != nil && h.Moot(err)
}

// Consume is one worker: receive, handle, again, until stop ends. A message
// once taken is finished whatever happens to stop, as long as ctx lasts.
func (u *Pump) Consume(ctx, stop context.Context, q store.Queue) error {
	failures := 0
	for {
		d, err := u.Queue.Receive(stop, q, u.server.mail.arrived)
		if err != nil && stop.Err() != nil {
			return nil
		}
		if errors.Is(err, store.ErrClosed) {
			return fmt.Errorf("pump: queue %s: %w", q, err)
		}
		if err != nil {
			failures++
			delay := u.Retries.Backoff(failures, string(q))
			u.Log.Error("queue cannot be read", "queue", q, "error", err, "again", delay)
			turn.Pause(stop, delay)
			continue
		}
		failures = 0
		u.Hands.Take(d)
		u.handle(ctx, stop, d)
		u.Hands.Leave(d)
	}
}

// handle gives one delivery its end: committed, retried later, or dead. What is
// for an instance goes through its mailbox, in the order of the queue.
func (u *Pump) handle(ctx, stop context.Context, d store.Delivery) {
	m := d.Message()
	env, p, err := u.read(ctx, stop, d)
	u.server.mail.sort(m, p) // whatever came of it: those behind wait for this one
	switch {
	case m.Crashes >= u.CrashMax:
		u.ends.toDeadLetter(ctx, stop, d, problem.New(problem.Internal, "message.crash-loop", "%d processes died while they handled the message", m.Crashes))
		return
	case p != nil:
		u.server.attend(ctx, p)
		if err = p.Err; p.settled {
			return
		}
	case err == nil:
		err = u.server.guarded(d, func() error { return u.deliver(ctx, stop, d, env) })
	}
	if err != nil && m.Attempts >= u.Retries.Max && u.moot(env, err) {
		err = d.Commit(ctx, store.Change{})
	}
	switch f := u.Retries.fate(m, err); f {
	case ended:
	case released:
		u.ends.release(ctx, stop, resend{d: d, cause: err})
	case deadLettered:
		if errors.Is(err, store.ErrTaken) {
			err = problem.Wrap(err, problem.Conflict, "command.settled", "the message settles a command that is not open")
		}
		u.ends.toDeadLetter(ctx, stop, d, err)
	default:
		u.ends.sendLater(ctx, stop, resend{d: d, cause: err, due: func() time.Time { return u.Now().Add(u.Retries.delay(f, m, m.ID)) }, attempts: f.attempts(m)})
	}
}

// read is what a message says, and what it is in the mailbox of its instance: nil when it goes into none.
func (u *Pump) read(ctx, stop context.Context, d store.Delivery) (env signal.Envelope, p *post, err error) {
	m := d.Message()
	defer func() {
		if v := recover(); v != nil {
			p, err = nil, u.Turns.Panicked(v, "message", m.ID)
		}
	}()
	if env, err = signal.Decode(m.Body); err != nil || m.Crashes >= u.CrashMax {
		return env, nil, err
	}
	if p = u.posted(ctx, d, env); p != nil {
		p.stop, p.wake = stop, make(chan bool, 1)
	}
	return env, p, nil
}

// posted is what a message is in the mailbox of its instance; nil when it is not for an instance, or comes too early.
func (u *Pump) posted(ctx context.Context, d store.Delivery, env signal.Envelope) *post {
	m := d.Message()
	if m.Queue == store.Commands {
		return nil
	}
	h := u.handler(env)
	if h != nil && h.Outside != nil || env.DueAt.After(u.Now()) {
		return nil
	}
	now := m.EnqueuedAt
	if m.DueAt.After(now) {
		now = m.DueAt
	}
	p := &post{Signal: turn.Signal{Envelope: env, Now: now, Delivery: d, Decide: turn.Step}}
	switch {
	case h == nil:
	case h.Alone != nil || h.Complete != nil:
		p.solo = h
	case h.Bind != nil:
		h.Bind(ctx, &p.Signal)
	}
	return p
}

// deliver gives a message that goes into no mailbox to whom it concerns.
func (u *Pump) deliver(ctx, stop context.Context, d store.Delivery, env signal.Envelope) error {
	m := d.Message()
	if m.Queue == store.Commands {
		return u.OnCommand(ctx, stop, d, env)
	}
	if h := u.handler(env); h != nil && h.Outside != nil {
		return h.Outside(ctx, d, env)
	}
	// It came before its time, for the clock of the queue ran ahead (design 4.8): it is put back for the remainder.
	return d.Commit(ctx, store.Change{Send: []store.Send{m.Again(env.DueAt, m.Attempts)}})
}

// Turn gives a signal to its instance, through the mailbox, and returns what it
// did when that is committed. A version conflict loads and decides again (design
// 4.4). A signal that was applied before is consumed without effect; its outcome
// has the disposition Duplicate.
func (u *Pump) Turn(ctx context.Context, env signal.Envelope, now time.Time, decide turn.Decision) (*engine.Outcome, error) {
	return u.server.submit(ctx, &post{Signal: turn.Signal{Envelope: env, Now: now, Decide: decide}})
}

// Submit is Turn for a call of somebody who may come again: one whose turn does not
// begin within [CallMax] is instance.contended, and has changed nothing.
func (u *Pump) Submit(ctx context.Context, s turn.Signal) (*engine.Outcome, error) {
	return u.server.submit(ctx, &post{Signal: s, call: true})
}

// Instead gives a signal to its instance in place of a message: that of d, which
// has the mailbox of the instance held for itself.
func (u *Pump) Instead(ctx context.Context, d store.Delivery, held string, env signal.Envelope, now time.Time) error {
	p := &post{Signal: turn.Signal{Envelope: env, Now: now, Decide: turn.Step, Delivery: d}, noted: true}
	if env.InstanceID != held { // who serves that mailbox may wait for a place
		<-u.server.slots
		defer func() { u.server.slots <- struct{}{} }()
		if suspect(d) {
			<-u.server.suspects
			defer func() { u.server.suspects <- struct{}{} }() // before a slot, as in placed
		}
		p.apart = true
		_, err := u.server.submit(ctx, p)
		return err
	}
	u.server.serve(ctx, []*post{p})
	p.consume(ctx)
	return p.Err
}

// Standing says whether messages of an instance are in line to come again: what
// is sent to it now is to be queued behind them.
func (u *Pump) Standing(instance string) bool { return u.server.lines.Standing(instance, u.Now()) }

// Enqueue queues a signal, encoded as body. What its sender sends next does not overtake it on this node.
func (u *Pump) Enqueue(ctx context.Context, to store.Writer, env signal.Envelope, body []byte) error {
	p, now := &post{Signal: turn.Signal{Envelope: env}}, u.Now()
	u.server.lines.Hold(p, now, now, errors.New("an earlier signal is queued"), true)
	err := to.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}})
	if err != nil && !errors.Is(err, store.ErrUnknown) {
		u.server.lines.Passed(env.InstanceID, env.SignalID)
	}
	return err
}

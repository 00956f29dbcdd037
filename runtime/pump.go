package runtime

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/dispatch"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"
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

// sendAgain gives those messages of a turn back that failed and are to come again.
// It is called while nobody else serves the instance, so that they and those
// behind them come again in their order.
func (r *Runtime) sendAgain(ctx context.Context, posts []*post) {
	var back, sends []resend
	var given []*post // back
	var first *post   // that others follow: all may have failed alike
	var stop context.Context
	for _, p := range posts {
		if !p.queued() { // a call, or a result; it may be the one at the front
			continue
		}
		stop = p.stop
		m := p.Delivery.Message()
		f := r.fate(m, p.Err)
		if f == released {
			back, given = append(back, resend{d: p.Delivery, cause: p.Err}), append(given, p)
			p.settled = true
		}
		if f == ended || f == buried || f == refused {
			r.mail.passed(p, r.Now())
		}
		if f == ended || f == buried || f == released {
			continue
		}
		delay := holdPause
		if f != followed {
			delay = r.backoff(max(f.attempts(m), 1), p.Envelope.InstanceID)
		}
		due := r.Now().Add(delay)
		if f.blocks() {
			due = r.mail.hold(p, r.Now(), due, holdGrace, p.Err, f == followed || first != nil)
			first = p
		}
		p.settled = true
		sends = append(sends, resend{d: p.Delivery, cause: p.Err, due: due, attempts: f.attempts(m)})
	}
	r.sendLater(ctx, stop, sends...)
	r.release(ctx, stop, back...)
	for i, p := range given { // those that came meanwhile follow them
		r.mail.hold(p, r.Now(), r.Now(), givenGrace, p.Err, i > 0 || p.Behind != nil)
	}
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

// requested starts the instance an application asked for through the queue.
func (r *Runtime) requested(ctx context.Context, d store.Delivery, env signal.Envelope, now time.Time) error {
	start, err := signal.DecodeStart(env.Payload)
	if err != nil {
		return err
	}
	if err := r.allowed(ctx, d, env.InstanceID, start); err != nil {
		return err
	}
	if ok, err := r.wanted(ctx, d, start.Parent); err != nil || !ok {
		if err == nil {
			err = d.Commit(ctx, store.Change{}) // its parent has gone on without it
		}
		return err
	}
	// Loading waits for the ledger's note: a definition that kills its process
	// must not do so unnoted.
	id, there, err := r.find(ctx, env.InstanceID, start)
	if err != nil {
		return err
	}
	if there {
		return r.startedBefore(ctx, d, env.InstanceID, id, env, start, now)
	}
	_, err = r.begin(ctx, d, env, start, now)
	if errors.Is(err, store.ErrDuplicate) {
		id, err := r.first(ctx, env.InstanceID, start)
		if err != nil {
			return err
		}
		return r.startedBefore(ctx, d, env.InstanceID, id, env, start, now)
	}
	if err != nil {
		return r.refused(ctx, d, env, err)
	}
	return err
}

// startedBefore gives the signal of a start request to the instance that is
// there. Without one the request is a repeat and changes nothing. held is the
// instance whose mailbox the caller has.
func (r *Runtime) startedBefore(ctx context.Context, d store.Delivery, held, id string, env signal.Envelope, start signal.Start, now time.Time) error {
	if start.Signal == nil {
		return d.Commit(ctx, store.Change{})
	}
	env, err := start.Signal.Envelope(id, env.OccurredAt, env.Headers)
	if err != nil {
		return err
	}
	p := &post{Signal: turn.Signal{Envelope: env, Now: now, Decide: turn.Step, Delivery: d}, noted: true}
	if id != held {
		_, err = r.submit(ctx, p, d)
		return err
	}
	r.serve(ctx, []*post{p})
	return p.Err
}

// resend is a message that comes again: sent for later, its bytes unchanged, or
// given back.
type resend struct {
	d        store.Delivery
	cause    error
	due      time.Time
	attempts int
}

// sendLater sends messages again in their order, each in the commit that
// consumes it (design 4.5): all in one, where the store can.
func (r *Runtime) sendLater(ctx, stop context.Context, list ...resend) {
	if len(list) > 1 && r.Store.Joins() {
		var c store.Change
		for i, s := range list {
			c.Send = append(c.Send, s.send())
			if i > 0 {
				c.Also = append(c.Also, s.d.Message())
			}
		}
		if list[0].d.Commit(ctx, c) == nil {
			for _, s := range list {
				r.retried(s)
			}
			return
		}
	}
	var back []resend
	for _, s := range list {
		if err := s.d.Commit(ctx, store.Change{Send: []store.Send{s.send()}}); err != nil {
			s.cause = err
			back = append(back, s)
			continue
		}
		r.retried(s)
	}
	r.release(ctx, stop, back...)
}

func (s *resend) send() store.Send {
	m := s.d.Message()
	return store.Send{Queue: m.Queue, Body: m.Body, Due: s.due, Priority: m.Priority, Attempts: s.attempts}
}

func (r *Runtime) retried(s resend) {
	m := s.d.Message()
	level, by := slog.LevelWarn, owners[ownerOf(s.cause)]
	if errors.As(s.cause, new(*turn.Behind)) {
		level, by = slog.LevelDebug, "order"
	}
	r.Log.Log(context.Background(), level, "message failed and is tried again", "queue", m.Queue, "message", m.ID, "attempt", s.attempts, "due", s.due, "by", by, "error", s.cause)
	r.metrics.retries.WithLabelValues(string(m.Queue), by).Inc()
}

// releaseMax bounds the pause before a message is given back: nobody else can
// have it before, and the store may take commits again at any moment.
const releaseMax = 5 * time.Second

// release gives messages back, in their order, after a pause, so that a store in
// trouble is not asked again at once. While the store takes nothing, it keeps
// trying: a message that this node holds is nobody else's.
func (r *Runtime) release(ctx, stop context.Context, list ...resend) {
	for attempt := 1; len(list) > 0; attempt++ {
		m := list[0].d.Message()
		if attempt&(attempt-1) == 0 { // with growing pauses: a store in trouble has many messages in hand
			r.Log.Error("messages are given back", "queue", m.Queue, "message", m.ID, "messages", len(list), "attempt", attempt, "error", list[0].cause)
		}
		if !dispatch.Sleep(stop, min(r.backoff(attempt, m.ID), releaseMax)) {
			return // what a node holds is free again when its store closes
		}
		for len(list) > 0 {
			err := list[0].d.Release(ctx, list[0].cause)
			if err != nil && !errors.Is(err, store.ErrLost) && !errors.Is(err, store.ErrClosed) {
				list[0].cause = err
				break
			}
			list = list[1:]
		}
	}
}

// bury makes the message a dead letter, its bytes unchanged (A13).
func (r *Runtime) bury(ctx, stop context.Context, d store.Delivery, cause error) {
	m := d.Message()
	instance := ""
	var head struct {
		InstanceID string `json:"workflowInstanceId"`
	}
	if jsonv2.Unmarshal(m.Body, &head) == nil && len(head.InstanceID) <= signal.MaxIDBytes {
		instance = head.InstanceID
	}
	code := problem.CodeOf(cause)
	r.Log.Error("message is a dead letter now", "queue", m.Queue, "message", m.ID, "instance", instance, "reason", code, "error", cause)
	change := store.Change{DeadLetter: &projections.DeadLetter{
		ID: newID(), Queue: string(m.Queue), InstanceID: instance, Envelope: m.Body, Reason: code, Detail: cause.Error(),
		Attempts: m.Attempts + 1, Node: r.Store.Node(), EnqueuedAt: m.EnqueuedAt, DiedAt: r.Now(),
	}}
	if env, err := signal.Decode(m.Body); err == nil {
		if answer, ok := r.refusal(env, cause); ok {
			change.Send = []store.Send{answer}
		}
	}
	err := d.Commit(ctx, change)
	if err != nil {
		r.release(ctx, stop, resend{d: d, cause: err})
		return
	}
	r.metrics.deadLetters.WithLabelValues(string(m.Queue)).Inc()
	var p *problem.Error
	if errors.As(cause, &p) && sendersFault(p) {
		return // the instance waits for another answer, or another event
	}
	if r.SuspendOnDeadLetter && instance != "" {
		_, err := r.Operate(ctx, instance, engine.Suspend, nil, "dead-letter policy")
		if k := problem.KindOf(err); err != nil && k != problem.Conflict && k != problem.NotFound {
			r.Log.Error("instance of a dead letter could not be suspended", "instance", instance, "error", err)
		}
	}
}

// newID is a UUID of version 7: unique, and in order of time, so that what
// belongs together lies together in the database.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// newIncarnation is what tells an instance from all others, those of the same id
// before and after it included: 96 random bits.
func newIncarnation() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// backoff is 1, 2, 4, 8, 16 s … (design 4.5), capped, less up to a fifth of
// jitter taken from a hash of the attempt and seed, so that a repeated decision
// repeats it.
func (r *Runtime) backoff(attempt int, seed string) time.Duration {
	d := r.RetryDelayMax
	if shift := max(attempt-1, 0); r.RetryDelay <= d>>shift {
		d = r.RetryDelay << shift
	}
	h := fnv.New32a()
	fmt.Fprintf(h, "%s#%d", seed, attempt)
	return d - time.Duration(h.Sum32()%200)*(d/1000)
}

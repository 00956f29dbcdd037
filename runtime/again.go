package runtime

import (
	"context"
	"errors"
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
)

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

package pump

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// ends gives messages their ends, but for those that a turn commits: sent again for later, given back, a dead letter.
type ends struct{ *Config }

// resend is a message that comes again: sent for later, its bytes unchanged, or given back.
type resend struct {
	d        store.Delivery
	cause    error
	due      func() time.Time // asked for right before it is sent
	attempts int
}

// sendLater sends messages again in their order, each in the commit that consumes it (design 4.5), or all in one.
func (e *ends) sendLater(ctx, stop context.Context, list ...resend) {
	if len(list) > 1 && e.Joins {
		var c store.Change
		for i, s := range list {
			c.Send = append(c.Send, s.d.Message().Again(s.due(), s.attempts))
			if i > 0 {
				c.Also = append(c.Also, s.d.Message())
			}
		}
		if list[0].d.Commit(ctx, c) == nil {
			for i, s := range list {
				e.retried(s, c.Send[i].Due)
			}
			return
		}
	}
	var back []resend
	for _, s := range list {
		due := s.due()
		if err := s.d.Commit(ctx, store.Change{Send: []store.Send{s.d.Message().Again(due, s.attempts)}}); err != nil {
			s.cause = err
			back = append(back, s)
			continue
		}
		e.retried(s, due)
	}
	e.release(ctx, stop, back...)
}

// retried says and counts that a message comes again.
func (e *ends) retried(s resend, due time.Time) {
	m := s.d.Message()
	level, by := slog.LevelWarn, Owners[e.Retries.ownerOf(s.cause)]
	if errors.As(s.cause, new(*turn.Behind)) {
		level, by = slog.LevelDebug, "order"
	}
	e.Log.Log(context.Background(), level, "message failed and is tried again", "queue", m.Queue, "message", m.ID, "attempt", s.attempts, "due", due, "by", by, "error", s.cause)
	e.Metrics.Retried(m.Queue, by)
}

// releaseMax bounds the pause before a message is given back: nobody else can
// have it before, and the store may take commits again at any moment.
const releaseMax = 5 * time.Second

// release gives messages back, in their order, after a pause, so that a store in trouble is not asked again at once.
// While the store takes nothing, it keeps trying: a message that this node holds is nobody else's.
func (e *ends) release(ctx, stop context.Context, list ...resend) {
	for attempt := 1; len(list) > 0; attempt++ {
		m := list[0].d.Message()
		if attempt&(attempt-1) == 0 { // with growing pauses: a store in trouble has many messages in hand
			e.Log.Error("messages are given back", "queue", m.Queue, "message", m.ID, "messages", len(list), "attempt", attempt, "error", list[0].cause)
		}
		if !turn.Pause(stop, min(e.Retries.Backoff(attempt, m.ID), releaseMax)) {
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

// toDeadLetter makes the message a dead letter, its bytes unchanged (A13).
func (e *ends) toDeadLetter(ctx, stop context.Context, d store.Delivery, cause error) {
	m := d.Message()
	instance := ""
	var head struct {
		InstanceID string `json:"workflowInstanceId"`
	}
	if jsonv2.Unmarshal(m.Body, &head) == nil && len(head.InstanceID) <= signal.MaxIDBytes {
		instance = head.InstanceID
	}
	code := problem.CodeOf(cause)
	e.Log.Error("message is a dead letter now", "queue", m.Queue, "message", m.ID, "instance", instance, "reason", code, "error", cause)
	change := store.Change{DeadLetter: &projections.DeadLetter{
		ID: uuid.Must(uuid.NewV7()).String(), Queue: string(m.Queue), InstanceID: instance, Envelope: m.Body, Reason: code, Detail: cause.Error(),
		Attempts: m.Attempts + 1, Node: e.Node, EnqueuedAt: m.EnqueuedAt, DiedAt: e.Now(),
	}}
	if env, err := signal.Decode(m.Body); err == nil {
		if h := e.Handlers[env.Type]; h != nil && h.Refusal != nil {
			if answer, ok := h.Refusal(env, cause); ok {
				change.Send = []store.Send{answer}
			}
		}
	}
	if err := d.Commit(ctx, change); err != nil {
		e.release(ctx, stop, resend{d: d, cause: err})
		return
	}
	e.Metrics.DeadLetter(m.Queue)
	var p *problem.Error
	if errors.As(cause, &p) && e.Retries.Blame(p).Sender {
		return // the instance waits for another answer, or another event
	}
	if e.Suspend != nil && instance != "" {
		err := e.Suspend(ctx, instance)
		if k := problem.KindOf(err); err != nil && k != problem.Conflict && k != problem.NotFound {
			e.Log.Error("instance of a dead letter could not be suspended", "instance", instance, "error", err)
		}
	}
}

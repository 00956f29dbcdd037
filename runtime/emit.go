package runtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// can reports whether this node performs commands for target. Every node
// publishes events.
func (r *Runtime) can(target string) bool {
	return target == engine.TargetEvent || target == engine.TargetLifecycle || r.Performer.Can(target)
}

// attempt makes one attempt at a command.
func (r *Runtime) attempt(ctx context.Context, j *job) (json.RawMessage, *engine.Failure) {
	switch j.command.Target {
	case engine.TargetEvent:
		return nil, r.emit(ctx, j)
	case engine.TargetLifecycle:
		return nil, r.publishLifecycle(ctx, j)
	}
	return r.Performer.Perform(ctx, j.command, j.key(), j.failures+1)
}

// emit publishes an event: to the instances that listen for it, and then to
// the outside where the performer has a target for it. An attempt after the
// first does both again; an instance takes an event once, and the outside
// knows it by source and id.
func (r *Runtime) emit(ctx context.Context, j *job) *engine.Failure {
	if _, err := r.PublishEvent(ctx, j.command.Input, j.command.Headers); err != nil {
		kind := problem.KindOf(err)
		return &engine.Failure{
			Error: snapshot.Error{Type: engine.ErrorBase + engine.ErrRuntime, Status: 500, Title: "Event not routed", Detail: err.Error()},
			Retry: kind != problem.Invalid && kind != problem.TooLarge,
		}
	}
	if !r.Performer.Can(engine.TargetEvent) {
		return nil
	}
	_, failure := r.Performer.Perform(ctx, j.command, j.key(), j.failures+1)
	return failure
}

// delivered ends a command that nobody waits for.
func (r *Runtime) delivered(ctx context.Context, j *job) error {
	return r.ended(ctx, store.Change{Claims: []store.Claim{{
		InstanceID: j.instance, Position: j.position, Expect: r.Store.Node(), Done: true,
	}}})
}

// undelivered makes a dead letter of a command that nobody waits for.
func (r *Runtime) undelivered(ctx context.Context, j *job, e snapshot.Error) error {
	r.Log.Error("event is undelivered and a dead letter now", "instance", j.instance, "command", j.position, "error", e.Detail)
	return r.ended(ctx, r.abandon(j, r.Store.Node(), e))
}

func (r *Runtime) ended(ctx context.Context, c store.Change) error {
	err := r.insist(ctx, func() error { return r.Store.Commit(ctx, c) })
	switch {
	case errors.Is(err, store.ErrLost), errors.Is(err, store.ErrDuplicate):
		return nil // another run of the command has ended it
	case err == nil && c.DeadLetter != nil:
		r.metrics.deadLetters.WithLabelValues(string(store.Commands)).Inc()
	}
	return err
}

// abandon gives a command back without announcing it again: what announces
// it is a dead letter, and the command stays pending until an operator
// replays that, with all its attempts before it.
func (r *Runtime) abandon(j *job, owner string, e snapshot.Error) store.Change {
	now := r.Now()
	envelope := signal.ForCommand(j.instance, j.position, j.failures+1, now, now)
	body, _ := envelope.Encode() // ids of the store's own
	return store.Change{
		Claims: []store.Claim{{InstanceID: j.instance, Position: j.position, Expect: owner, Error: e.Title + ": " + e.Detail}},
		DeadLetter: &projections.DeadLetter{
			ID: newID(), Queue: string(store.Commands), InstanceID: j.instance, Envelope: body, Reason: codeUndelivered,
			Detail: e.Title + ": " + e.Detail, Attempts: j.failures + 1, Node: r.Store.Node(), EnqueuedAt: now, DiedAt: now,
		},
	}
}

// codeUndelivered is the reason of a dead letter that announces an event whose
// attempts are used up.
const codeUndelivered = "event.undelivered"

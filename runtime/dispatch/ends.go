package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/google/uuid"
)

// can reports whether this node performs commands for target. Every node publishes events.
func (o outside) can(target string) bool {
	return target == engine.TargetEvent || target == engine.TargetLifecycle || o.Performer.Can(target)
}

// attempt makes one attempt at a command, at the destination at which it is.
func (o outside) attempt(ctx context.Context, j *Job) (json.RawMessage, *engine.Failure) {
	switch j.command.Target {
	case engine.TargetEvent:
		return nil, o.emit(ctx, j)
	case engine.TargetLifecycle:
		return nil, o.Lifecycle(ctx, j.command, j.failures+1)
	}
	return o.Performer.Perform(ctx, j.command, j.Key, j.attempt())
}

// emit publishes an event: to the instances that listen for it, and then, as a stage of its own, to the outside where
// the performer has a target for it. An attempt after the first does both again; an instance takes an event once, and
// the outside knows it by source and id.
func (o outside) emit(ctx context.Context, j *Job) *engine.Failure {
	if j.inside {
		_, failure := o.Performer.Perform(ctx, j.command, j.Key, j.attempt())
		return failure
	}
	if _, err := o.Publish(ctx, j.command.Input, j.command.Headers); err != nil {
		kind := problem.KindOf(err)
		return &engine.Failure{
			Error: snapshot.Error{Type: engine.ErrorBase + engine.ErrRuntime, Status: 500, Title: "Event not routed", Detail: err.Error()},
			Retry: kind != problem.Invalid && kind != problem.TooLarge,
		}
	}
	return nil
}

// done ends a command that nobody waits for.
func (r Record) done(ctx context.Context, j *Job) error {
	unsent := r.Unsent(j.command)
	claim := store.Claim{InstanceID: j.Instance, Position: j.position, Expect: r.Node, Done: unsent == "", Error: unsent}
	return r.ended(ctx, store.Change{Claims: []store.Claim{claim}})
}

// undelivered makes a dead letter of a command that nobody waits for.
func (r Record) undelivered(ctx context.Context, j *Job, e snapshot.Error) error {
	r.Log.Error("command is undelivered and a dead letter now", "instance", j.Instance, "command", j.position, "target", j.command.Target, "error", e.Detail)
	return r.ended(ctx, r.Abandon(j, store.Claim{Expect: r.Node}, undeliveredCode(j), e))
}

func (r Record) ended(ctx context.Context, c store.Change) error {
	err := retryCommit(ctx, func() error { return r.Writer.Commit(ctx, c) })
	switch {
	case errors.Is(err, store.ErrTaken), errors.Is(err, store.ErrDuplicate):
		return nil // another run of the command has ended it
	case err == nil && c.DeadLetter != nil:
		r.Dead.Inc()
	}
	return err
}

// Abandon gives a command back without announcing it again: what announces it is a dead letter, and the command stays
// pending until an operator replays that, with all its attempts before it; its row says those there were. Claim says who has it.
func (r Record) Abandon(j *Job, claim store.Claim, reason string, e snapshot.Error) store.Change {
	now := r.Now().Truncate(time.Microsecond)                                            // as stores keep it
	body, _ := signal.ForCommand(j.Instance, j.position, j.attempt(), now, now).Encode() // ids of the store's own
	claim.InstanceID, claim.Position, claim.Delivered, claim.Deliveries, claim.Unknown = j.Instance, j.position, j.delivered, j.deliveries, j.unknown
	claim.Attempts, claim.Error, claim.GivenUp = j.failures, e.Title+": "+e.Detail, now
	if j.command.Ack != 0 { // announcements before this one are superseded
		claim.NextAt, claim.Error = now, NoticeGivenUp+": "+claim.Error
	}
	return store.Change{
		Claims: []store.Claim{claim},
		DeadLetter: &projections.DeadLetter{
			ID: uuid.Must(uuid.NewV7()).String(), Queue: string(store.Commands), InstanceID: j.Instance, Envelope: body, Reason: reason,
			Detail: e.Title + ": " + e.Detail, Attempts: j.failures + j.deliveries, Node: r.Node, EnqueuedAt: now, DiedAt: now,
		},
	}
}

// undeliveredCode is the reason of the dead letter that announces what nobody waits for, when its attempts are used up.
func undeliveredCode(j *Job) string {
	if j.command.Target == engine.TargetEvent || j.command.Target == engine.TargetLifecycle {
		return "event.undelivered"
	}
	return "command.undelivered"
}

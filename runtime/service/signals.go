package service

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Signal applies a signal to one instance as a turn of its own, and says what
// it did: applied, buffered until a wait matches, duplicate, or queued. It is
// durable when Signal returns; a repeat with the same signal id is applied once,
// and is a duplicate also where what the first one did would refuse it.
//
// Problems: instance.unknown, instance.closed, signal.stale (its token or its
// expected version is not the instance's), limit.buffer, signal.*. None of them
// has changed anything; event.forbidden is recorded. A signal that does not say who
// sends it is from whoever acts in ctx.
func (s *Signals) Signal(ctx context.Context, env signal.Envelope) (engine.Disposition, error) {
	if len(env.Principal) == 0 && env.Type == signal.ExternalSignal {
		env.Principal = audit.By(ctx)
	}
	body, err := env.Encode()
	if err != nil {
		return "", err
	}
	if s.Pump.Standing(env.InstanceID) { // one before it is in the queue
		return s.enqueued(ctx, env, body)
	}
	out, err := s.Pump.Submit(ctx, turn.Signal{Envelope: env, Now: s.Now(), Decide: signalled})
	if k := problem.KindOf(err); err == nil || k != problem.Internal && k != problem.Unavailable && problem.CodeOf(err) != "definition.unknown" {
		if err == nil || !s.Refused(ctx, env, err) {
			return out.Disposition, err
		}
		out, err = s.Pump.Submit(ctx, turn.Signal{Envelope: env, Now: s.Now(), Decide: signalled})
		return out.Disposition, err
	}
	s.Log.Warn("signal could not be applied at once and is queued", "instance", env.InstanceID, "signal", env.SignalID, "error", err)
	return s.enqueued(ctx, env, body)
}

// enqueued leaves a signal to the queue. What its sender sends next does not
// overtake it on this node.
func (s *Signals) enqueued(ctx context.Context, env signal.Envelope, body []byte) (engine.Disposition, error) {
	return engine.Queued, s.Pump.Enqueue(ctx, s.Writer, env, body)
}

// signalled is the decision about a signal whose sender waits for the answer:
// what a queue would record as stale or late, they are told.
func signalled(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
	out, err := turn.Step(def, snap, in)
	switch {
	case err != nil:
		return out, err
	case out.Disposition == engine.Closed:
		return out, problem.New(problem.Conflict, "instance.closed", "instance %s is %s", snap.InstanceID, snap.Status)
	case out.Disposition == engine.Stale:
		return out, problem.New(problem.Conflict, "signal.stale", "instance %s, now at version %d, does not wait for this signal", snap.InstanceID, snap.Version)
	}
	return out, nil
}

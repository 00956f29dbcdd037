package runtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	jsonv2 "github.com/go-json-experiment/json"
)

// pin writes into each request for a child instance the version that is the
// latest now: what the parent's commit holds stays, whatever is published
// before the child begins. A definition that is not there is left to the
// child's start, which tells the parent. Starts that a definition causes to
// itself are paced.
func (r *Runtime) pin(ctx context.Context, messages []engine.Message) error {
	for i := range messages {
		env := &messages[i].Envelope
		if env.Type != signal.StartRequest {
			continue
		}
		start, err := signal.DecodeStart(env.Payload)
		if err != nil {
			return turn.Output(err)
		}
		if causedBy(env.Headers, start.Definition) {
			messages[i].Due = r.paced(selfStart, start.Definition)
		}
		if start.Parent == nil || start.Version != "" {
			continue
		}
		def, err := r.Definitions.Find(ctx, start.Definition, "")
		if problem.KindOf(err) == problem.NotFound || problem.CodeOf(err) == engine.CodeElsewhere {
			continue
		}
		if err != nil {
			return err
		}
		start.Version = def.Ref().Version
		if env.Payload, err = json.Marshal(start); err != nil {
			return err
		}
	}
	return nil
}

// errLeft is why a child does not begin that was left before it had.
var errLeft = errors.New("its parent has left it before it began")

// wanted reports whether the parent of a requested instance still waits for
// it. Its cancellation of the child may have come before the child: left, when it
// waits for nothing but what became of it.
func (r *Runtime) wanted(ctx context.Context, c store.Writer, p *signal.Parent) (ok, left bool, err error) {
	if p == nil || p.Token == "" {
		return true, false, nil
	}
	snap, part, err := r.turns.Load(ctx, c, p.InstanceID)
	if errors.Is(err, store.ErrNotFound) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	defer part.Release()
	if snap.Schedule != nil { // the end of a schedule ends no run
		return true, false, nil
	}
	w, waits := snap.Wait(p.Token)
	return waits && w.Left == 0, waits && w.Left > 0, nil
}

// refusal is the answer to a parent whose child cannot begin; ok is false when
// nobody waits for it.
func (r *Runtime) refusal(env signal.Envelope, cause error) (s store.Send, ok bool) {
	start, err := signal.DecodeStart(env.Payload)
	if env.Type != signal.StartRequest || err != nil || start.Parent == nil || start.Parent.Token == "" {
		return store.Send{}, false
	}
	e := engine.ChildError(start.Definition, env.InstanceID, snapshot.Error{
		Type: engine.ErrorBase + engine.ErrConfiguration, Status: 400, Title: "Sub-workflow not started", Detail: cause.Error(),
	})
	payload, err := json.Marshal(engine.ChildEnd{Child: env.InstanceID, Error: e})
	if err != nil {
		return store.Send{}, false
	}
	body, err := signal.Envelope{
		SignalID: signal.Bounded(env.InstanceID + ".refused"), InstanceID: start.Parent.InstanceID, Type: signal.SubWorkflowCompleted,
		WaitingToken: start.Parent.Token, OccurredAt: r.Now(), Headers: env.Headers, Payload: payload,
	}.Encode()
	if err != nil {
		r.Log.Error("parent cannot be told that its sub-workflow was not started", "instance", start.Parent.InstanceID, "error", err)
		return store.Send{}, false
	}
	return store.Send{Queue: store.Signals, Body: body}, true
}

// refused answers the parent of an instance that can never begin, in the
// commit that consumes the request. In any other case it returns the cause,
// and the rules for failing messages hold.
func (r *Runtime) refused(ctx context.Context, d store.Delivery, env signal.Envelope, cause error) error {
	switch problem.KindOf(cause) {
	case problem.NotFound, problem.Invalid, problem.TooLarge:
	default:
		return cause
	}
	answer, ok := r.refusal(env, cause)
	if !ok {
		return cause
	}
	return d.Commit(ctx, store.Change{Send: []store.Send{answer}})
}

// absent reports whether the instance is not there that a message of the engine's own is
// for. After all retries it has never begun, as a child that was to be ended, or it has
// ended and been deleted while its timer ran.
func absent(err error) bool { return problem.CodeOf(err) == "instance.unknown" }

// storedOutput reports whether the output of a child is in its snapshot.
func storedOutput(env signal.Envelope) bool {
	var end engine.ChildEnd
	return jsonv2.Unmarshal(env.Payload, &end) == nil && end.Stored
}

// fetch completes the answer of a child whose output was too large for a
// message: it is in the child's snapshot.
func (r *Runtime) fetch(ctx context.Context, d store.Delivery, env signal.Envelope) (signal.Envelope, error) {
	var end engine.ChildEnd
	if err := jsonv2.Unmarshal(env.Payload, &end); err != nil || !end.Stored {
		return env, nil // the engine says what is wrong with it
	}
	child, part, err := r.turns.Load(ctx, d, end.Child)
	if err != nil {
		return env, turn.Unknown(err, end.Child)
	}
	defer part.Release()
	end.Output, end.Stored, end.Compensations = child.State.Output, false, child.Compensations
	env.Payload, err = json.Marshal(end)
	return env, err
}

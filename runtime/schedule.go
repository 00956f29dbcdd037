package runtime

import (
	"context"
	"encoding/json"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// publisher is a catalogue that says what it is about to publish.
type publisher interface {
	Before(ctx context.Context, f func(ctx context.Context, def engine.Definition) error) error
}

// Announce asks for the schedule instance of a definition that is about to be
// published. The request is durable before the definition is, so that no crash
// leaves a definition without its schedule; it is due a little later, when the
// definition is there.
func (r *Runtime) Announce(ctx context.Context, def engine.Definition) error {
	id, start, ok := engine.ScheduleStart(def)
	if !ok {
		return nil
	}
	payload, err := json.Marshal(start)
	if err != nil {
		return err
	}
	now := r.Now()
	due := now.Add(r.RetryDelay)
	body, err := signal.Envelope{
		SignalID: id, InstanceID: id, Type: signal.StartRequest, OccurredAt: now, DueAt: due, Payload: payload,
	}.Encode()
	if err != nil {
		return err
	}
	return r.Store.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Schedule, Body: body, Due: due}}})
}

// current reports whether a version is the one whose schedule counts: the
// latest.
func (r *Runtime) current(ctx context.Context, name, version string) (bool, error) {
	def, err := r.Definitions.Find(ctx, name, "")
	if err != nil {
		return false, err
	}
	return def.Ref().Version == version, nil
}

// obsolete handles the request for a schedule instance that shall not be: its
// definition was not published after all, or a newer one was.
func (r *Runtime) obsolete(ctx context.Context, d store.Delivery, start signal.Start) (bool, error) {
	if start.Schedule == nil {
		return false, nil
	}
	_, err := r.Definitions.Find(ctx, start.Definition, start.Version)
	if err == nil {
		ok, err := r.current(ctx, start.Definition, start.Version)
		return !ok, err
	}
	if problem.KindOf(err) == problem.NotFound && d.Message().Attempts >= r.RetryMax {
		r.Log.Warn("schedule of a definition that was not published is dropped", "definition", start.Definition, "version", start.Version)
		return true, nil
	}
	return false, err
}

// superseded is the decision about a tick of a schedule whose definition has a
// newer version: the schedule ends.
func (r *Runtime) superseded(ctx context.Context, snap snapshot.Snapshot, in engine.Input, decide decision) (decision, error) {
	if snap.Schedule == nil || in.Signal.Type != signal.TimerDue && in.Signal.Type != signal.SubWorkflowCompleted || snap.Status.Closed() {
		return decide, nil
	}
	ok, err := r.current(ctx, snap.Definition.Name, snap.Definition.Version)
	if ok || err != nil {
		return decide, err
	}
	return func(def engine.Definition, snap snapshot.Snapshot, in engine.Input) (engine.Outcome, error) {
		in.Signal.Headers = actorHeader("a newer version of the definition")
		return engine.Operate(def, snap, engine.Cancel, nil, in)
	}, nil
}

// begins makes of an event the request for the instance that it begins at a
// schedule's subscription. A schedule that is suspended keeps the event as any
// instance does (ok is false); one whose definition has a newer version has
// nothing to say any more (body is nil).
func (r *Runtime) begins(ctx context.Context, def engine.Definition, w projections.Wait, env signal.Envelope) (body []byte, ok bool, err error) {
	p, isProgram := def.(*engine.Program)
	if !isProgram {
		return nil, false, nil
	}
	if ok, err := r.current(ctx, def.Ref().Name, def.Ref().Version); !ok || err != nil {
		return nil, true, err
	}
	row, err := r.Store.Instance(ctx, w.InstanceID)
	if err != nil || row.Status == string(snapshot.Suspended) {
		return nil, false, err
	}
	id, start, err := p.EventStart(env.Payload, w.InstanceID)
	if err != nil {
		return nil, true, problem.Wrap(err, problem.Invalid, "event.invalid", "event cannot begin an instance")
	}
	payload, err := json.Marshal(start)
	if err != nil {
		return nil, true, err
	}
	body, err = signal.Envelope{
		SignalID: id, InstanceID: id, Type: signal.StartRequest, OccurredAt: env.OccurredAt, Headers: env.Headers, Payload: payload,
	}.Encode()
	return body, true, err
}

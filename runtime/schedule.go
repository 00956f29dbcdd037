package runtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/correlation"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/service"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/schedule"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// publisher is a catalogue that has its versions published by somebody else, and policies
// besides.
type publisher interface {
	Through(ctx context.Context, f definition.Publication) error
	LiveBy(versions func(ctx context.Context, name string) ([]string, error))
	CanBy(can func(function string) bool)
	ServedBy(unserved func(ctx context.Context, functions []string) ([]string, error))
	Outdated(p *engine.Policy)
	Newer(ctx context.Context, def engine.Definition) (bool, error)
}

// declarations says what a version declares whose Go code this node does not have; nil, when
// its definitions are no catalogue.
func declarations(of Definitions) func(ctx context.Context, name, version string) ([]byte, error) {
	from, ok := of.(interface {
		Source(ctx context.Context, name, version string) (definition.Record, error)
	})
	if !ok {
		return nil
	}
	return func(ctx context.Context, name, version string) ([]byte, error) {
		record, err := from.Source(ctx, name, version)
		return record.Document, err
	}
}

// newerVersion is who ends the schedule of a version.
const newerVersion = "a newer version of the definition"

// Publish stores versions of definitions and hands the schedule of each name over to
// its newest, with that one: in one commit, so that each tick and each event is one
// version's, on every node from then on. It is a definition.Publication.
func (r *Runtime) Publish(ctx context.Context, versions []definition.Version) (bool, error) {
	for range turn.StaleMax {
		change, ids, err := publications(ctx, r, versions)
		if errors.Is(err, store.ErrStale) {
			r.counts.conflicts.Inc()
			continue
		}
		if err != nil {
			return false, err
		}
		err = r.Store.Writer.Commit(ctx, change)
		for _, id := range ids {
			r.turns.Cache.Drop(id) // what it has is of before
		}
		switch {
		case errors.Is(err, store.ErrStale): // a tick was faster
			r.counts.conflicts.Inc()
		case errors.Is(err, store.ErrDuplicate):
			return false, nil
		default:
			return err == nil, err
		}
	}
	return false, problem.New(problem.Unavailable, "definition.contended", "schedules changed %d times while versions were published", turn.StaleMax).
		WithHint("publish them again")
}

// publications is what the publication of versions changes, and the instances of that.
func publications(ctx context.Context, r *Runtime, versions []definition.Version) (c store.Change, ids []string, err error) {
	for i := range versions {
		part, of, err := r.publication(ctx, &versions[i])
		if err != nil {
			return c, nil, err
		}
		with := part.With
		part.With = nil // changes that are part of another have none of their own
		c.With, ids = append(append(c.With, part), with...), append(ids, of...)
	}
	return c, ids, nil
}

// publication is what the publication of a version changes, and the instances
// of that.
func (r *Runtime) publication(ctx context.Context, v *definition.Version) (c store.Change, ids []string, err error) {
	if record := v.Record; !v.Stored {
		c.Definition = &store.Definition{
			Name: record.Name, Version: record.Version, Digest: record.Digest, Kind: record.Kind, Title: record.Title,
			Source: record.Source, Document: record.Document, PublishedAt: record.PublishedAt, Ordinal: record.Ordinal,
		}
		c.Audit = []store.Audit{audit.Row(ctx, r.Now(), "publish", definition.ID(record.Name, record.Version), "")}
	}
	if !v.Newest {
		return c, nil, nil
	}
	def, err := v.Definition(ctx)
	if err != nil {
		return c, nil, err
	}
	snap, err := r.listening(ctx, v.Record.Name)
	if err != nil {
		return c, nil, err
	}
	var old engine.Definition
	if snap != nil {
		if old, err = r.Definitions.Pinned(ctx, snap.Definition); err != nil {
			r.Log.Warn("a schedule is handed over by a version that cannot be read", "instance", snap.InstanceID, "error", err)
			old = nil
		}
	}
	now := r.Now()
	in := engine.Input{
		Signal: signal.Envelope{SignalID: service.NewID(), OccurredAt: now, Headers: service.ActorHeader(newerVersion)},
		Now:    now, Clock: now, Key: r.key, Epoch: r.epoch, Incarnation: service.NewIncarnation(), Limits: r.Limits, Engine: r.Engine,
	}
	ended, begun, err := schedule.HandOver(old, snap, def, in)
	if err != nil {
		return c, nil, err
	}
	for _, part := range []struct {
		prev *snapshot.Snapshot
		out  *engine.Outcome
	}{{snap, ended}, {nil, begun}} {
		if part.out == nil {
			continue
		}
		with, err := r.scheduleChange(part.prev, part.out)
		if err != nil {
			return c, nil, err
		}
		c.With, ids = append(c.With, with), append(ids, part.out.Snapshot.InstanceID)
	}
	return c, ids, nil
}

// scheduleChange is what a turn of a schedule instance writes: it has no
// commands and no tasks.
func (r *Runtime) scheduleChange(prev *snapshot.Snapshot, out *engine.Outcome) (c store.Change, err error) {
	c.Snapshot = &out.Snapshot
	c.Runtime = store.Runtime{ExecutedBy: r.Store.Nodes.Node(), ExecutedAt: r.Now(), Due: firstDue(&out.Snapshot)}
	if c.Encoded, err = out.Snapshot.Encode(); err != nil {
		return c, err
	}
	if c.Rows, err = projections.Fold(prev, out, "", func(*engine.Entry) (string, int) { return "", 0 }); err != nil {
		return c, err
	}
	correlation.Waits(&c.Rows, prev, &out.Snapshot)
	c.Send, err = turn.Sends(c.Rows, out, c.Runtime.ExecutedAt)
	return c, err
}

// listening finds the schedule instance of a definition that has not ended;
// nil when there is none. One that has a successor which did not begin yet is
// succeeded here. One that ends meanwhile is store.ErrStale.
func (r *Runtime) listening(ctx context.Context, name string) (*snapshot.Snapshot, error) {
	q := backend.InstanceQuery{Definition: name, BusinessKey: schedule.Key, Limit: projections.MaxLimit}
	last := ""
	for {
		page, err := r.Store.Instances.Instances(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, row := range page.Items {
			closed := snapshot.Status(row.Status).Closed()
			if closed && (last != "" || row.Status != string(snapshot.Completed)) {
				continue
			}
			snap, err := r.Snapshot(ctx, row.ID)
			if errors.Is(err, store.ErrNotFound) || err == nil && snap.Schedule == nil {
				continue
			}
			if err == nil && !closed && snap.Status.Closed() {
				return nil, store.ErrStale // another publisher has ended it since the row was read
			}
			if err != nil || !closed {
				return &snap, err
			}
			last = row.ID
		}
		if q.After = page.Next; q.After == "" {
			return r.succeeded(ctx, last)
		}
	}
}

// allowed refuses a request from the queue for an id that is the engine's own,
// unless a schedule instance has asked for it as its successor.
func (r *Runtime) allowed(ctx context.Context, c store.Writer, id string, start signal.Start) error {
	if start.Schedule == nil {
		return service.Reserved(id)
	}
	ref := snapshot.Definition{Name: start.Definition, Version: start.Version}
	before, part, err := r.turns.Load(ctx, c, schedule.ID(ref, start.Schedule.Generation-1))
	if err == nil {
		defer part.Release()
	}
	if err == nil && before.Schedule != nil && before.Schedule.Successor == id {
		return nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return problem.New(problem.Invalid, service.CodeReserved, "instance %s is no schedule instance's successor", id).
		WithHint("a schedule begins when its definition is published")
}

// succeeded begins the successor of a schedule instance that has ended, unless
// it has begun: the message that asks for it may still be on its way.
func (r *Runtime) succeeded(ctx context.Context, id string) (*snapshot.Snapshot, error) {
	if id == "" {
		return nil, nil
	}
	ended, err := r.Snapshot(ctx, id)
	if err != nil || ended.Schedule.Successor == "" {
		return nil, err
	}
	next := ended.Schedule.Successor
	snap, err := r.Snapshot(ctx, next)
	if errors.Is(err, store.ErrNotFound) {
		now := r.Now()
		env := signal.Envelope{SignalID: next, InstanceID: next, Type: signal.StartRequest, OccurredAt: now}
		_, err = r.Begin(ctx, r.Store.Writer, env, schedule.Successor(ended.Definition, ended.Schedule), now)
		if err == nil || errors.Is(err, store.ErrDuplicate) {
			snap, err = r.Snapshot(ctx, next)
		}
	}
	if err != nil || snap.Status.Closed() {
		return nil, err
	}
	return &snap, nil
}

// begins makes of an event the request for the instance that it begins at a
// schedule's subscription. A schedule that is suspended keeps the event as any
// instance does: ok is false then.
func (r *Runtime) begins(ctx context.Context, def engine.Definition, w projections.Wait, env signal.Envelope) (body []byte, ok bool, err error) {
	s := schedule.Of(def)
	if s == nil {
		return nil, false, nil
	}
	row, err := r.Store.Instances.Instance(ctx, w.InstanceID)
	if err != nil || row.Status == string(snapshot.Suspended) {
		return nil, false, err
	}
	id, start, err := s.EventStart(def.Ref(), env.Payload, w.InstanceID)
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

package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// An event and the wait for it may be committed in any order, on any nodes,
// and none of them sees the other's commit while it works. So the event is
// kept first and looks for waits then; the wait is committed first, with a
// message that looks for events then. Whichever commits later finds the other.

// keep stores an event before its waits are looked for.
func (r *Runtime) keep(ctx context.Context, eventType, key string, event json.RawMessage) error {
	if r.EventTTL == 0 {
		return nil
	}
	now := r.Now()
	return r.Store.KeepEvent(ctx, store.Event{Key: key, Type: eventType, ReceivedAt: now, ExpiresAt: now.Add(r.EventTTL), Body: event})
}

// reached forgets an event for which somebody waited.
func (r *Runtime) reached(ctx context.Context, key string, n int) error {
	if r.EventTTL == 0 {
		return nil
	}
	if n > 0 {
		return r.Store.DropEvent(ctx, key)
	}
	r.metrics.kept.Inc()
	return nil
}

// looks is the message of a commit that begins to wait for events: look what
// has been kept. A schedule begins nothing for events before it.
func (r *Runtime) looks(s *snapshot.Snapshot, rows projections.Rows) ([]store.Send, error) {
	if r.EventTTL == 0 || len(rows.Waits) == 0 || s.Schedule != nil {
		return nil, nil
	}
	body, err := signal.Envelope{
		SignalID: signal.Bounded(fmt.Sprintf("%s.%d.inbox", s.InstanceID, s.Version)), InstanceID: s.InstanceID, Type: signal.InternalContinue,
		OccurredAt: s.UpdatedAt, Headers: s.Headers, Payload: json.RawMessage(`{"inbox":true}`),
	}.Encode()
	return []store.Send{{Queue: store.Signals, Body: body}}, err
}

// looksForEvents reports whether a signal is such a message. One of the engine's
// own, to go on, has a token.
func looksForEvents(env signal.Envelope) bool { return env.WaitingToken == "" }

// look gives an instance the kept events that its waits are for. Those that it
// does not take now stay in its buffer for its waits to come; those that it
// had before are duplicates.
func (r *Runtime) look(ctx context.Context, d store.Delivery, env signal.Envelope) error {
	snap, part, err := r.turns.Load(ctx, d, env.InstanceID)
	if errors.Is(err, store.ErrNotFound) {
		return d.Commit(ctx, store.Change{})
	}
	if err != nil {
		return err
	}
	defer part.Release()
	if snap.Status.Closed() {
		return d.Commit(ctx, store.Change{})
	}
	def, err := r.Definitions.Pinned(ctx, snap.Definition)
	if err != nil {
		return err
	}
	var sends []store.Send
	bytes, given := 0, 0
	seen := map[string]bool{}
	for _, w := range snap.Waits {
		if w.Kind != snapshot.WaitEvent || seen["type "+w.Event] {
			continue
		}
		seen["type "+w.Event] = true
		err := r.eachKept(ctx, w.Event, func(e store.Event) error {
			if seen[e.Key] || given >= snapshot.MaxBuffered {
				return nil
			}
			ok, err := waitsFor(def, snap, e.Body)
			if err != nil || !ok {
				return err
			}
			seen[e.Key] = true
			given++
			body, err := signal.Envelope{
				SignalID: e.Key, InstanceID: env.InstanceID, Type: signal.ExternalSignal, OccurredAt: r.Now(), Headers: env.Headers, Payload: e.Body,
			}.Encode()
			if err != nil {
				return err
			}
			sends = append(sends, store.Send{Queue: store.Signals, Body: body})
			if bytes += len(body); bytes < eventBytes {
				return nil
			}
			change := store.Change{Send: sends}
			sends, bytes = nil, 0
			return r.Store.Commit(ctx, change) // who is told again has it already
		})
		if err != nil {
			return err
		}
	}
	return d.Commit(ctx, store.Change{Send: sends})
}

// eachKept calls f with every kept event that a wait for a type may be for.
func (r *Runtime) eachKept(ctx context.Context, eventType string, f func(store.Event) error) error {
	if eventType == engine.AnyType {
		eventType = ""
	}
	var last store.Event
	for {
		page, err := r.Store.KeptEvents(ctx, eventType, r.Now(), last)
		if err != nil {
			return err
		}
		for _, last = range page {
			if err := f(last); err != nil {
				return err
			}
		}
		if len(page) < projections.MaxLimit && !projections.Full(page) {
			return nil
		}
	}
}

// waitsFor reports whether one of the waits of an instance is for an event.
func waitsFor(def engine.Definition, snap *snapshot.Snapshot, event json.RawMessage) (bool, error) {
	for _, w := range snap.Waits {
		if w.Kind != snapshot.WaitEvent {
			continue
		}
		if ok, err := def.Matches(snap, w, event); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// forget deletes kept events that have expired.
func (r *Runtime) forget(ctx context.Context) error {
	if r.EventTTL == 0 {
		return nil
	}
	for ctx.Err() == nil {
		n, err := r.Store.PurgeEvents(ctx, r.Now(), retentionBatch)
		if err != nil || n < retentionBatch {
			return err
		}
	}
	return nil
}

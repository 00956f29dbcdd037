package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// keep stores an event before its waits are looked for.
func (b *Inbox) keep(ctx context.Context, eventType, key string, event json.RawMessage) error {
	if b.TTL == 0 {
		return nil
	}
	now := b.Now()
	return b.Events.KeepEvent(ctx, backend.Event{Key: key, Type: eventType, ReceivedAt: now, ExpiresAt: now.Add(b.TTL), Body: event})
}

// reached forgets an event for which somebody waited.
func (b *Inbox) reached(ctx context.Context, key string, n int) error {
	if b.TTL == 0 {
		return nil
	}
	if n > 0 {
		return b.Events.DropEvent(ctx, key)
	}
	b.kept.Inc()
	return nil
}

// look is what such a message says: the types that the commit waits for, unless they are many,
// so that an instance for which nothing is kept need not be read.
type look struct {
	Inbox bool     `json:"inbox"`
	Types []string `json:"types,omitempty"`
}

// lookTypes are how many types a message names.
const lookTypes = 16

func typesOf(waits []projections.Wait) (types []string) {
	for i := range waits {
		if t := waits[i].EventType; !slices.Contains(types, t) {
			types = append(types, t)
		}
		if len(types) > lookTypes {
			return nil
		}
	}
	return types
}

// Looks is the message of a commit that begins to wait for events: look what
// has been kept. A schedule begins nothing for events before it.
func (b *Inbox) Looks(s *snapshot.Snapshot, rows projections.Rows) ([]store.Send, error) {
	if b.TTL == 0 || len(rows.Waits) == 0 || s.Schedule != nil {
		return nil, nil
	}
	says, err := json.Marshal(look{true, typesOf(rows.Waits)})
	if err != nil {
		return nil, err
	}
	body, err := signal.Envelope{
		SignalID: signal.Bounded(fmt.Sprintf("%s.%d.inbox", s.InstanceID, s.Version)), InstanceID: s.InstanceID, Type: signal.InternalContinue,
		OccurredAt: s.UpdatedAt, Headers: s.Headers, Payload: says,
	}.Encode()
	return []store.Send{{Queue: store.Signals, Body: body}}, err
}

// IsLook reports whether a signal to go on is such a message. One of the engine's
// own has a token.
func IsLook(env signal.Envelope) bool { return env.WaitingToken == "" }

// Look gives an instance the kept events that its waits are for. Those that it
// does not take now stay in its buffer for its waits to come; those that it
// had before are duplicates.
func (b *Inbox) Look(ctx context.Context, d store.Delivery, env signal.Envelope) error {
	if some, err := b.mayHave(ctx, env.Payload); err != nil {
		return err
	} else if !some {
		return d.Commit(ctx, store.Change{})
	}
	snap, part, err := b.Turns.Load(ctx, d, env.InstanceID)
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
	def, err := b.Definitions.Pinned(ctx, snap.Definition)
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
		err := b.eachKept(ctx, w.Event, func(e backend.Event) error {
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
				SignalID: e.Key, InstanceID: env.InstanceID, Type: signal.ExternalSignal, OccurredAt: b.Now(), Headers: env.Headers, Payload: e.Body,
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
			return b.Writer.Commit(ctx, change) // who is told again has it already
		})
		if err != nil {
			return err
		}
	}
	return d.Commit(ctx, store.Change{Send: sends})
}

// mayHave says whether there may be an event for whom a message to look is: not, where none of
// the types that it names is kept.
func (b *Inbox) mayHave(ctx context.Context, says json.RawMessage) (bool, error) {
	var l look
	if jsonv2.Unmarshal(says, &l) != nil || len(l.Types) == 0 {
		return true, nil
	}
	for _, t := range l.Types {
		page, err := b.Events.KeptEvents(ctx, typeKept(t), b.Now(), backend.Event{})
		if err != nil || len(page) > 0 {
			return true, err
		}
	}
	return false, nil
}

// typeKept is how events of the type of a wait are asked for; "" = all are.
func typeKept(of string) string {
	if of == engine.AnyType {
		return ""
	}
	return of
}

// eachKept calls f with every kept event that a wait for a type may be for.
func (b *Inbox) eachKept(ctx context.Context, eventType string, f func(backend.Event) error) error {
	var last backend.Event
	for {
		page, err := b.Events.KeptEvents(ctx, typeKept(eventType), b.Now(), last)
		if err != nil {
			return err
		}
		for _, last = range page {
			if err := f(last); err != nil {
				return err
			}
		}
		if len(page) < projections.MaxLimit && !backend.Full(page) {
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

// Forget deletes kept events that have expired.
func (b *Inbox) Forget(ctx context.Context) error {
	if b.TTL == 0 {
		return nil
	}
	for ctx.Err() == nil {
		n, err := b.Events.PurgeEvents(ctx, b.Now(), forgetBatch)
		if err != nil || n < forgetBatch {
			return err
		}
	}
	return nil
}

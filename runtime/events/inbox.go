package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/correlation"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// keep stores an event before its waits are looked for, and reports whether it is kept by that:
// not, where one that was published before is.
func (b *Inbox) keep(ctx context.Context, eventType, key string, event json.RawMessage) (bool, error) {
	if b.TTL == 0 {
		return false, nil
	}
	now := b.Now()
	return b.Events.KeepEvent(ctx, backend.Event{Key: key, Type: eventType, ReceivedAt: now, ExpiresAt: now.Add(b.TTL), Body: event})
}

// reached forgets an event that was kept by its publication, and for which somebody waited then.
// One that was kept before is for who begins to listen, whoever waits when it is published
// again: nobody waited at first, or a node ended before it had told those who did.
func (b *Inbox) reached(ctx context.Context, key string, n int) error {
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
// has been kept. A schedule begins nothing for events before it. prev is nil for a start.
func (b *Inbox) Looks(prev, s *snapshot.Snapshot, rows projections.Rows) ([]store.Send, error) {
	if b.TTL == 0 || len(rows.Waits) == 0 || s.Schedule != nil || goesOn(prev, s) {
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

// lookAgain is after how many entries of its stream an instance that goes on waiting looks
// again: a look gives it snapshot.MaxBuffered events at most, and there may be more.
const lookAgain = snapshot.MaxBuffered / 2

// goesOn reports whether an instance waits for nothing that it did not wait for before the
// turn. What was kept when it began to was given to it then, and every event since finds a
// wait. A listen that takes many events is a new wait after each: it looked each time, and
// was given all of them anew.
func goesOn(prev, next *snapshot.Snapshot) bool {
	if prev == nil || prev.Definition.Alone() != next.Definition.Alone() || prev.Position/lookAgain != next.Position/lookAgain {
		return false
	}
	for i := range next.Waits {
		w := &next.Waits[i]
		if w.Kind == snapshot.WaitEvent && !slices.ContainsFunc(prev.Waits, func(p snapshot.Wait) bool {
			return p.Kind == w.Kind && p.Event == w.Event && p.Pointer == w.Pointer && p.Arm == w.Arm && p.Bound == w.Bound && maps.Equal(p.Key, w.Key)
		}) {
			return false
		}
	}
	return true
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
	room, err := b.Turns.Room(ctx, snap, 0) // what is filed may take long, and others load meanwhile
	part.Release()
	if err != nil {
		return err
	}
	defer room.Release()
	if snap.Status.Closed() {
		return d.Commit(ctx, store.Change{})
	}
	def, err := b.Definitions.Pinned(ctx, snap.Definition)
	if err != nil {
		return err
	}
	asked, err := b.asked(ctx, def, snap.Waits)
	if err != nil {
		return err
	}
	var sends []store.Send
	bytes, given, seen := 0, 0, map[string]bool{}
	for e, err := range b.inOrder(ctx, asked) {
		if err != nil {
			return err
		}
		if seen[e.Key] {
			continue
		}
		if ok, err := waitsFor(def, snap, e.Body); err != nil {
			return err
		} else if !ok {
			continue
		}
		seen[e.Key] = true
		if had, err := b.Recorded(ctx, env.InstanceID, e.Key); err != nil {
			return err
		} else if had {
			continue
		}
		body, err := signal.Envelope{
			SignalID: e.Key, InstanceID: env.InstanceID, Type: signal.ExternalSignal, OccurredAt: b.Now(), Headers: env.Headers, Payload: e.Body,
		}.Encode()
		if err != nil {
			return err
		}
		sends = append(sends, store.Send{Queue: store.Signals, Body: body})
		if given++; given == snapshot.MaxBuffered {
			break
		}
		if bytes += len(body); bytes < eventBytes {
			continue
		}
		if err := b.Writer.Commit(ctx, store.Change{Send: sends}); err != nil { // who is told again has it already
			return err
		}
		sends, bytes = nil, 0
	}
	return d.Commit(ctx, store.Change{Send: sends})
}

// asked are the kept events that the waits of an instance may be for.
func (b *Inbox) asked(ctx context.Context, def engine.Definition, waits []snapshot.Wait) (asked []backend.KeptQuery, err error) {
	for _, w := range waits {
		if w.Kind != snapshot.WaitEvent {
			continue
		}
		those, err := b.those(ctx, def, w)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(asked, those) {
			asked = append(asked, those)
		}
	}
	return asked, nil
}

// mayHave says whether there may be an event for whom a message to look is: not, where none of
// the types that it names is kept.
func (b *Inbox) mayHave(ctx context.Context, says json.RawMessage) (bool, error) {
	var l look
	if jsonv2.Unmarshal(says, &l) != nil || len(l.Types) == 0 {
		return true, nil
	}
	for _, t := range l.Types {
		page, err := b.Events.KeptEvents(ctx, backend.KeptQuery{Type: typeKept(t), Limit: 1}, b.Now(), backend.Event{})
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

// ruled is a definition that says how a wait tells its events: of two waits of which it says
// the same, one event has the same key for both. Absent, or "": each place of each version is
// alone.
type ruled interface {
	CorrelationRule(pointer string, arm, bound int) string
}

func ruleOf(def engine.Definition, w snapshot.Wait) string {
	says := ""
	if r, ok := def.(ruled); ok {
		says = r.CorrelationRule(w.Pointer, w.Arm, w.Bound)
	}
	if says == "" {
		says = fmt.Sprintf("%s %d %d %s", def.Ref().Digest, w.Arm, w.Bound, w.Pointer)
	}
	return correlation.KeyHash(says)
}

// those are the kept events that a wait may be for. One who listens files what nobody has
// filed yet by the rule of the wait, so that each event is looked at once, and not by each who
// listens: with 10,000 kept that took 57 ms. Where some are filed by another rule, all of the
// type are looked at.
func (b *Inbox) those(ctx context.Context, def engine.Definition, w snapshot.Wait) (backend.KeptQuery, error) {
	all := backend.KeptQuery{Type: typeKept(w.Event)}
	if all.Type == "" {
		return all, nil
	}
	rule := ruleOf(def, w)
	if err := b.file(ctx, def, w, rule); err != nil {
		return all, err
	}
	// Asked behind the filing: whoever filed one of them meanwhile is seen.
	if others, err := b.Events.FiledOtherwise(ctx, all.Type, rule); others || err != nil {
		return all, err
	}
	return backend.KeptQuery{Type: all.Type, Rule: rule, Key: correlation.KeyHash(engine.Key(w.Key))}, nil
}

// unmatched is under which key an event is filed that no wait of the rule takes.
const unmatched = "-"

// file files the events of the type of a wait that nobody has filed. An event that is kept
// while it does looks for waits itself, and finds this one.
func (b *Inbox) file(ctx context.Context, def engine.Definition, w snapshot.Wait, rule string) error {
	free := backend.KeptQuery{Type: w.Event, Unfiled: true, Limit: 1}
	if page, err := b.Events.KeptEvents(ctx, free, b.Now(), backend.Event{}); err != nil || len(page) == 0 {
		return err
	}
	free.Limit = projections.MaxLimit
	b.filing.Lock()
	defer b.filing.Unlock()
	for k := (kept{those: free}); ; k.page = nil {
		if err := b.fill(ctx, &k); err != nil || len(k.page) == 0 {
			return err
		}
		filed := make([]backend.Filed, len(k.page))
		for i, e := range k.page {
			filed[i] = backend.Filed{Event: e.Key, Key: unmatched}
			key, ok, err := def.Correlate(w.Pointer, w.Arm, w.Bound, e.Body)
			if err != nil {
				return err
			}
			if ok {
				filed[i].Key = correlation.KeyHash(key)
			}
		}
		if err := b.Events.FileEvents(ctx, rule, filed); err != nil {
			return err
		}
	}
}

// inOrder are the kept events that are asked for in any of several ways, in the order in which
// they came: which of its filters a listen names first is no matter.
func (b *Inbox) inOrder(ctx context.Context, asked []backend.KeptQuery) iter.Seq2[backend.Event, error] {
	return func(yield func(backend.Event, error) bool) {
		lists := make([]kept, len(asked))
		for i, those := range asked {
			those.Limit = max(projections.MaxLimit/len(asked), 1) // of all together a page is in memory
			lists[i].those = those
		}
		for {
			var next *kept
			for i := range lists {
				l := &lists[i]
				if err := b.fill(ctx, l); err != nil {
					yield(backend.Event{}, err)
					return
				}
				if len(l.page) > 0 && (next == nil || earlier(l.page[0], next.page[0])) {
					next = l
				}
			}
			if next == nil || !yield(next.page[0], nil) {
				return
			}
			next.page = next.page[1:]
		}
	}
}

func earlier(a, b backend.Event) bool {
	return cmp.Or(a.ReceivedAt.Compare(b.ReceivedAt), cmp.Compare(a.Key, b.Key)) < 0
}

// kept are events that are asked for, a page at a time.
type kept struct {
	those backend.KeptQuery
	page  []backend.Event // what is left of it
	last  backend.Event   // of the page
	over  bool            // behind the page is none
}

// fill reads the next page where nothing is left of one.
func (b *Inbox) fill(ctx context.Context, k *kept) error {
	if len(k.page) > 0 || k.over {
		return nil
	}
	page, err := b.Events.KeptEvents(ctx, k.those, b.Now(), k.last)
	if err != nil {
		return err
	}
	if k.page, k.over = page, len(page) < k.those.Limit && !backend.Full(page); len(page) > 0 {
		k.last = page[len(page)-1]
	}
	return nil
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

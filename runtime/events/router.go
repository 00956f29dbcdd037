package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/correlation"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/schedule"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	jsonv2 "github.com/go-json-experiment/json"
)

// PublishEvent gives a CloudEvent to every instance that waits for it: those
// whose listen has its type, its filter and its correlation. It returns to how many
// instances it was given, those that it begins among them. An instance gets it once, however many of its waits it
// fits and however often the event (source and id, or its dedupekey) is published. Problems: event.invalid, signal.too-large.
func (r *Router) PublishEvent(ctx context.Context, event json.RawMessage, headers map[string]string) (int, error) {
	var e struct {
		SpecVersion string `json:"specversion"`
		ID          string `json:"id"`
		Source      string `json:"source"`
		Type        string `json:"type"`
		DedupeKey   string `json:"dedupekey"`
	}
	if err := jsonv2.Unmarshal(event, &e); err != nil {
		return 0, problem.Wrap(err, problem.Invalid, "event.invalid", "event is not a CloudEvent in JSON")
	}
	for name, v := range map[string]string{"id": e.ID, "source": e.Source, "type": e.Type} {
		if v == "" {
			return 0, problem.New(problem.Invalid, "event.invalid", "event has no %s", name)
		}
	}
	if n := len(e.Type); n > signal.MaxKeyBytes {
		return 0, problem.New(problem.Invalid, "event.invalid", "the type of the event has %d bytes; at most %d", n, signal.MaxKeyBytes)
	}
	signalID := "ce-" + correlation.KeyHash(e.Source+"\x00"+e.ID)
	if e.DedupeKey != "" {
		probe := signal.Envelope{SignalID: "s", InstanceID: "i", Type: signal.ExternalSignal, OccurredAt: r.Now(), DedupeKey: e.DedupeKey}
		if err := probe.Validate(); err != nil {
			return 0, problem.Wrap(err, problem.Invalid, "event.invalid", "dedupekey of the event cannot be one")
		}
		signalID = signal.Keyed(e.DedupeKey)
	}
	kept, err := r.Inbox.keep(ctx, e.Type, signalID, event)
	if err != nil {
		return 0, err
	}
	sent := &reached{who: map[string]bool{}}
	give := func() (left error) { // that is of waits that could not be looked at
		for _, eventType := range []string{e.Type, engine.AnyType} {
			if err := r.routeAll(ctx, eventType, event, signalID, headers, sent); errors.As(err, new(*unreadable)) {
				left = err
			} else if err != nil {
				return err
			}
		}
		return left
	}
	if err := give(); err != nil || !kept {
		return len(sent.who), err
	}
	if err := r.Inbox.reached(ctx, signalID, len(sent.who)); err != nil {
		return len(sent.who), err
	}
	// Who began to wait meanwhile may have looked for it when it was kept no more.
	if len(sent.who) > 0 {
		err = give()
	}
	return len(sent.who), err
}

// reached are who has an event.
type reached struct {
	who   map[string]bool // instances, and the tokens of waits that begin one
	paged bool            // there were more waits of a spec than a page has: one may have moved between two pages
}

// unreadable is why the waits of one definition cannot be looked at. Those of the others
// get the event nevertheless, and get it once when it is published again.
type unreadable struct{ error }

func (u *unreadable) Unwrap() error { return u.error }

// looksMax bounds how often an event looks for waits while versions are
// published under it.
const looksMax = 100

// pagedLooks bounds how often it looks again because waits may have moved from a page to
// another: those who begin to wait for it meanwhile would have it go on.
const pagedLooks = 3

// routeAll sends an event to every wait of its type. A migration may move a
// wait from a spec that was not looked at yet to one that was, and a newer
// version takes the place of another; so it looks until nothing has moved. The error
// is unreadable when all those have it whose definitions can be read.
func (r *Router) routeAll(ctx context.Context, eventType string, event json.RawMessage, signalID string, headers map[string]string, sent *reached) error {
	var before []string
	var left error
	for look := range looksMax {
		specs, err := r.Waits.WaitSpecs(ctx, eventType)
		if err != nil {
			return err
		}
		if before != nil && !mayHaveMoved(before, specs) && !sent.paged {
			return left
		}
		left, sent.paged = nil, false
		had := len(sent.who)
		for _, spec := range specs {
			if err := r.route(ctx, eventType, spec, event, signalID, headers, sent); errors.As(err, new(*unreadable)) {
				left = err
			} else if err != nil {
				return err
			}
		}
		if len(specs) == 0 || slices.Equal(before, specs) && (!sent.paged || had == len(sent.who) || look >= pagedLooks) {
			return left
		}
		before = specs
	}
	return problem.New(problem.Unavailable, "event.contended", "who waits for the event changed %d times while it was delivered", looksMax).
		WithHint("publish it again: who has it already gets it once")
}

// mayHaveMoved reports whether one definition has event waits of several
// versions, now or since before.
func mayHaveMoved(before, now []string) bool {
	versions := map[string]string{}
	for _, spec := range slices.Concat(before, now) {
		place, _ := correlation.ParseSpec(spec)
		if other, ok := versions[place.Name]; ok && other != place.Version {
			return true
		}
		versions[place.Name] = place.Version
	}
	return false
}

// route sends an event to the instances that wait under one spec, but for the
// waits that it was sent to before.
func (r *Router) route(ctx context.Context, eventType, spec string, event json.RawMessage, signalID string, headers map[string]string, sent *reached) error {
	place, ok := correlation.ParseSpec(spec)
	if !ok {
		return fmt.Errorf("events: spec %q of a wait is not one", spec)
	}
	def, key, ok, err := r.correlate(ctx, place, event)
	if err != nil || !ok {
		return err
	}
	after := projections.Wait{}
	for {
		waits, err := r.Waits.Waits(ctx, eventType, spec, correlation.KeyHash(key), after, eventFanOut)
		if err != nil || len(waits) == 0 {
			return err
		}
		var sends []store.Send
		gets := map[string]bool{} // who these are for
		bytes := 0
		for _, w := range waits {
			who := w.InstanceID // whose waits have other tokens once it has taken an event
			if schedule.IsSubscription(place.Pointer) {
				who = w.Token
			}
			if sent.who[who] || gets[who] {
				continue
			}
			env := signal.Envelope{
				SignalID: signalID, InstanceID: w.InstanceID, Type: signal.ExternalSignal,
				OccurredAt: r.Now(), Headers: headers, Payload: event,
			}
			body, ok, err := []byte(nil), false, error(nil)
			if schedule.IsSubscription(place.Pointer) {
				body, ok, err = r.Begins(ctx, def, w, env)
			}
			if err == nil && !ok {
				body, err = env.Encode()
			}
			if err != nil {
				return err
			}
			if body == nil {
				continue
			}
			send := store.Send{Queue: store.Signals, Body: body, Due: r.Paced(headers, place.Name)}
			sends, gets[who], bytes = append(sends, send), true, bytes+len(body)
			if bytes < eventBytes {
				continue
			}
			if err := r.deliverTo(ctx, sends, gets, sent); err != nil {
				return err
			}
			sends, gets, bytes = nil, map[string]bool{}, 0
		}
		if err := r.deliverTo(ctx, sends, gets, sent); err != nil {
			return err
		}
		after = waits[len(waits)-1]
		if len(waits) < eventFanOut {
			return nil
		}
		sent.paged = true
	}
}

// correlate gives the key of an event for those who wait at a place. Of Go code that
// only other nodes have it is known what the code declares, and no definition: who
// waits gets the event by the queue, as any signal that waits for such a node.
func (r *Router) correlate(ctx context.Context, p correlation.Place, event json.RawMessage) (def engine.Definition, key string, ok bool, err error) {
	def, err = r.Definitions.Find(ctx, p.Name, p.Version)
	if problem.CodeOf(err) == engine.CodeElsewhere && r.Declared != nil && !schedule.IsSubscription(p.Pointer) {
		document, unread := r.Declared(ctx, p.Name, p.Version)
		if unread != nil {
			return nil, "", false, unread
		}
		if key, ok, declared := correlation.Declared(document, p.Pointer, event); declared {
			return nil, key, ok, nil
		}
	}
	if err == nil {
		key, ok, err = def.Correlate(p.Pointer, p.Arm, p.Bound, event)
	}
	if err != nil && ctx.Err() == nil && !strings.HasPrefix(problem.CodeOf(err), "store.") {
		err = &unreadable{err}
	}
	return def, key, ok, err
}

// deliverTo commits the messages to who waits for an event, and notes it.
func (r *Router) deliverTo(ctx context.Context, sends []store.Send, gets map[string]bool, sent *reached) error {
	if len(sends) == 0 {
		return nil
	}
	if err := r.Writer.Commit(ctx, store.Change{Send: sends}); err != nil {
		return err
	}
	maps.Copy(sent.who, gets)
	return nil
}

package api

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

func (s instanceAPI) lifecycleOperations(h huma.API) {
	trigger := operation("trigger-event", http.MethodPost, "/v1/lifecycles/{environment}/{definition}/{reference}/events", "lifecycles",
		"Trigger an event of what the reference names", http.StatusNotFound, http.StatusConflict)
	trigger.Description = "The first event of a reference begins its instance, in one commit with the event; an event that is refused changes nothing. " +
		"A repeat with the same requestId changes nothing and says duplicate."
	trigger.DefaultStatus = http.StatusCreated
	register(s.service, h, trigger, s.trigger)
	register(s.service, h, operation("get-lifecycle", http.MethodGet, "/v1/lifecycles/{environment}/{definition}/{reference}", "lifecycles",
		"Show in which state it is", http.StatusNotFound), s.getLifecycle)
}

// ByReference names the one instance of a definition for an application's key.
type ByReference struct {
	Environment string `path:"environment" maxLength:"256"`
	Definition  string `path:"definition" maxLength:"256"`
	Reference   string `path:"reference" maxLength:"256" doc:"The application's own key: the business key of the instance."`
}

func (r ByReference) full() string { return r.Environment + "/" + r.Definition }

type triggerInput struct {
	ByReference
	Caller
	Key  string `header:"Idempotency-Key" maxLength:"128" doc:"The requestId, when the body has none."`
	Body client.TriggerRequest
}

func (s instanceAPI) trigger(ctx context.Context, in *triggerInput) (*answer[client.Triggered], error) {
	event, err := eventName(in.Body.Event)
	if err != nil {
		return nil, err
	}
	if err := s.mayTrigger(ctx, in.full(), event); err != nil {
		return nil, err
	}
	known, err := knownBy(in.Body.DedupeKey, in.Body.RequestID, in.Key)
	if err != nil {
		return nil, err
	}
	id, isNew, did, err := s.Starter.StartOrSignal(ctx, "", signal.Start{
		Definition: in.full(), Version: in.Body.Version, BusinessKey: in.Reference, StartKey: signal.LifecycleKey, Input: in.Body.Input,
		Signal: &signal.FirstSignal{ID: known, Type: event, Data: in.Body.Payload, Actor: actor(ctx, in.Body.Actor),
			Sender: in.Body.Sender, Sequence: in.Body.Sequence, AckRequired: in.Body.AckRequired},
	}, in.headers())
	if err != nil {
		return nil, err
	}
	snap := s.done(ctx, id)
	first, err := s.first(ctx, id, known, did)
	if err != nil { // a duplicate, which has done nothing
		return nil, err
	}
	return created(client.Triggered{
		InstanceID: id, Created: isNew, Disposition: string(did), First: first, State: stateOf(snap), Status: string(snap.Status), Error: toError(snap.Error),
	}, isNew), nil
}

// mayTrigger refuses an event of a type that is not for who asks, but for those of a
// lifecycle: who may trigger them its own roles say. What is written in Go is in no list of
// versions, and is no lifecycle.
func (s instanceAPI) mayTrigger(ctx context.Context, name, event string) error {
	refused := access.Publishes(principal.Of(ctx), event)
	if refused == nil {
		return nil
	}
	versions, err := s.Definitions.Versions(ctx, name, 0)
	if err != nil {
		return err
	}
	other := func(r definition.Record) bool { return r.Kind != "lifecycle" }
	if len(versions) == 0 || slices.ContainsFunc(versions, other) {
		return refused
	}
	return nil
}

// firstID is the first id that is given, or a new one.
func firstID(ids ...string) string {
	for _, id := range ids {
		if id != "" {
			return id
		}
	}
	return uuid.Must(uuid.NewV7()).String()
}

// knownBy is the id by which the instance knows what is said: that of a key of the
// application, else the first that is given, or a new one. None is taken for that of a key.
func knownBy(dedupeKey string, ids ...string) (string, error) {
	for _, id := range ids {
		if strings.HasPrefix(id, signal.Keyed("")) {
			return "", problem.New(problem.Invalid, "signal.invalid", "the id %.64q begins as those of dedupe keys do", id).
				WithHint("say the key as dedupeKey, or choose another id")
		}
	}
	if dedupeKey == "" {
		return firstID(ids...), nil
	}
	probe := signal.Envelope{SignalID: "s", InstanceID: "i", Type: signal.ExternalSignal, OccurredAt: time.Unix(0, 0), DedupeKey: dedupeKey}
	return signal.Keyed(dedupeKey), probe.Validate()
}

// first is what became of the first of several messages that are one.
func (s instanceAPI) first(ctx context.Context, instance, signalID string, did engine.Disposition) (*client.First, error) {
	if did != engine.Duplicate {
		return nil, nil
	}
	e, err := s.Reader.Streams.Received(ctx, instance, signalID)
	if errors.Is(err, store.ErrNotFound) { // only its sequence was taken
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	x := toEntry(e)
	if x.Disposition == string(engine.Duplicate) { // by its sequence, which another has taken
		repeat, found := x, false
		err := s.entries(ctx, instance, x.Position-1-lookBack, x.Position-1, func(e *projections.Entry) bool {
			x = toEntry(*e)
			found = x.Position < repeat.Position && x.Sender == repeat.Sender && x.Sequence == repeat.Sequence && x.Disposition != repeat.Disposition
			return found
		})
		if err != nil || !found {
			return nil, err // it is long ago
		}
	}
	return &client.First{Position: x.Position, Disposition: cmp.Or(x.Disposition, string(engine.Applied)), Refusal: x.Refusal, At: x.At}, nil
}

// eventName reads an event's name, or its code, as a text.
func eventName(v any) (string, error) {
	switch v := v.(type) {
	case string:
		if v != "" {
			return v, nil
		}
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return strconv.FormatInt(int64(v), 10), nil
		}
	}
	return "", invalid("/event", "event is neither a name nor an integer code")
}

// stateOf is the product-facing state of an instance, or its status when it has
// none.
func stateOf(snap snapshot.Snapshot) string {
	if at := snap.At(); at != "" {
		return at
	}
	return string(snap.Status)
}

func (s instanceAPI) getLifecycle(ctx context.Context, in *ByReference) (*answer[client.Lifecycle], error) {
	row, err := s.Reader.Instances.Started(ctx, in.full(), in.Reference, signal.LifecycleKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil, s.noLifecycle(ctx, in)
	}
	if err != nil {
		return nil, err
	}
	snap, err := s.Operator.Snapshot(ctx, row.ID)
	if err != nil {
		return nil, unknownInstance(err, row.ID)
	}
	events, err := s.Operator.Takes(ctx, snap)
	if err != nil {
		return nil, err
	}
	l := toLifecycle(row, snap)
	l.Events = append(l.Events, events...)
	return ok(l), nil
}

// noLifecycle says whether it is the definition or the instance that is not
// there.
func (s instanceAPI) noLifecycle(ctx context.Context, in *ByReference) error {
	versions, err := s.Definitions.Versions(ctx, in.full(), 0)
	if err != nil {
		return err
	}
	if len(versions) == 0 {
		return problem.New(problem.NotFound, "definition.unknown", "no definition is named %s", clip(in.full()))
	}
	return problem.New(problem.NotFound, "instance.unknown", "%s has no instance of reference %q", clip(in.full()), clip(in.Reference))
}

func toLifecycle(row projections.Instance, snap snapshot.Snapshot) client.Lifecycle {
	return client.Lifecycle{
		InstanceID: row.ID, Definition: snap.Definition.Name, Version: snap.Definition.Version, Reference: row.BusinessKey,
		State: stateOf(snap), Events: []string{}, Status: string(snap.Status), Since: sinceOf(row, snap), UpdatedAt: snap.UpdatedAt.UTC(),
	}
}

// sinceOf is when an instance came to where it rests. For a state its frame
// says it. For anything else the row does: it is written only when the place or
// the status is another.
func sinceOf(row projections.Instance, snap snapshot.Snapshot) time.Time {
	w, _ := snap.Primary()
	if b := snap.Branch(w.Branch); w.Kind == snapshot.WaitState && b != nil {
		for _, f := range b.Frames {
			if f.Pointer == w.Pointer {
				return f.StartedAt.UTC()
			}
		}
	}
	return row.UpdatedAt.UTC()
}

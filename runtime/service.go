package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/dispatch"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// startSpace is the namespace of instance ids that are derived from a start
// key: the same key gives the same id, and so the same instance.
var startSpace = uuid.MustParse("6b1f5c0e-6a53-5b0c-9d0b-5d0f0a6d1c11")

// Start begins an instance, or returns the one that the same request began
// before (created is false): a request is the same when it names the same
// instance id, or the same definition, business key and start key. An empty id
// lets Start choose one. Headers carry the trace, the correlation and the actor.
// A signal of the request is given to the instance as StartOrSignal does.
//
// Problems: signal.invalid-start, instance.reserved-id, instance.id-taken,
// definition.unknown. An instance whose first turn cannot be written begins as a
// faulted one.
func (r *Runtime) Start(ctx context.Context, id string, start signal.Start, headers map[string]string) (string, bool, error) {
	id, created, _, err := r.StartOrSignal(ctx, id, start, headers)
	return id, created, err
}

// StartOrSignal is Start with a signal to the instance (D2): one that the
// request begins gets it in the same commit, and does not begin when it refuses
// it; one that is there gets it as by Signal, whatever its version. It says
// what the signal did: applied, buffered, duplicate (the instance had it before,
// so that a repeat of any request changes nothing), queued, or closed (the new
// instance ran to its end and did not listen). Without a signal that is "".
//
// Problems: those of Start and of Signal, and those by which a definition
// refuses an event. None of them has changed anything.
func (r *Runtime) StartOrSignal(ctx context.Context, id string, start signal.Start, headers map[string]string) (string, bool, engine.Disposition, error) {
	if err := start.Validate(); err != nil {
		return "", false, "", err
	}
	if id == "" {
		id = newID()
		if start.StartKey != "" {
			id = uuid.NewSHA1(startSpace, fmt.Appendf(nil, "%q %q %q", start.Definition, start.BusinessKey, start.StartKey)).String()
		}
	}
	if err := reserved(id); err != nil {
		return "", false, "", err
	}
	if len(start.Input) == 0 {
		start.Input = json.RawMessage("null")
	}
	now := r.Now()
	env := signal.Envelope{
		SignalID: id, InstanceID: id, RuntimeProvider: signal.Provider, Type: signal.StartRequest, OccurredAt: now, Headers: headers,
	}
	if err := env.Validate(); err != nil {
		return "", false, "", err
	}
	if start.Signal != nil { // what a new instance would refuse, one that is there may take
		first, there, err := r.find(ctx, id, start)
		if err != nil || there {
			return r.signalFirst(ctx, first, start, env, err)
		}
	}
	out, err := r.begin(ctx, r.Store, env, start, now)
	if errors.Is(err, store.ErrDuplicate) {
		first, err := r.first(ctx, id, start)
		return r.signalFirst(ctx, first, start, env, err)
	}
	if err != nil || start.Signal == nil {
		return id, err == nil, "", err
	}
	return id, true, out.Disposition, nil
}

// signalFirst gives the signal of a start, if it has one, to the instance that
// is there.
func (r *Runtime) signalFirst(ctx context.Context, id string, start signal.Start, env signal.Envelope, err error) (string, bool, engine.Disposition, error) {
	if err != nil || start.Signal == nil {
		return id, false, "", err
	}
	if env, err = start.Signal.Envelope(id, env.OccurredAt, env.Headers); err != nil {
		return id, false, "", err
	}
	did, err := r.Signal(ctx, env)
	return id, false, did, err
}

// first finds the instance that the same request began before.
func (r *Runtime) first(ctx context.Context, id string, start signal.Start) (string, error) {
	first, there, err := r.find(ctx, id, start)
	if err == nil && !there {
		err = problem.New(problem.Unavailable, "instance.contended", "the instance of start key %q is being deleted", start.StartKey)
	}
	return first, err
}

// Codes of ids that a start cannot have.
const (
	codeReserved = "instance.reserved-id"
	codeTaken    = "instance.id-taken"
)

// reserved refuses ids that are the engine's own.
func reserved(id string) error {
	if !strings.HasPrefix(id, engine.SchedulePrefix) {
		return nil
	}
	return problem.New(problem.Invalid, codeReserved, "instance id %q begins with %q, as those of schedules do", id, engine.SchedulePrefix).
		WithHint("choose another id")
}

// find looks for the instance of a start: by its id, or, when that came from
// elsewhere, by its start key. An id that an instance of another definition has
// is the problem instance.id-taken.
func (r *Runtime) find(ctx context.Context, id string, start signal.Start) (string, bool, error) {
	row, err := r.Store.Instance(ctx, id)
	if err == nil && row.Definition != start.Definition {
		return "", false, problem.New(problem.Conflict, codeTaken, "instance %s is of definition %s, not %s", id, row.Definition, start.Definition).
			WithHint("choose another id, or none")
	}
	if !errors.Is(err, store.ErrNotFound) {
		return id, err == nil, err
	}
	if start.StartKey == "" {
		return id, false, nil
	}
	row, err = r.Store.Started(ctx, start.Definition, start.BusinessKey, start.StartKey)
	if errors.Is(err, store.ErrNotFound) {
		return id, false, nil
	}
	return row.ID, err == nil, err
}

// Snapshot returns an instance's last committed snapshot. Problem:
// instance.unknown.
func (r *Runtime) Snapshot(ctx context.Context, id string) (snapshot.Snapshot, error) {
	s, part, err := r.turns.Load(ctx, r.Store, id)
	if err != nil {
		return snapshot.Snapshot{}, turn.Unknown(err, id)
	}
	part.Release()
	return *s, nil
}

// Takes lists the events that an instance of a lifecycle takes now, by their
// names; its guards may still refuse one. Problems: definition.unknown,
// definition.digest.
func (r *Runtime) Takes(ctx context.Context, s snapshot.Snapshot) ([]string, error) {
	def, err := r.Definitions.Pinned(ctx, s.Definition)
	if err != nil {
		return nil, err
	}
	p, ok := def.(*engine.Program)
	if !ok {
		return nil, nil
	}
	return p.Takes(&s), nil
}

// Queued is the disposition of a signal that could not be decided at once: it
// is in the queue, durable, and the rules for failing messages hold.
const Queued = engine.Queued

// Signal applies a signal to one instance as a turn of its own, and says what
// it did: applied, buffered until a wait matches, duplicate, or queued. It is
// durable when Signal returns; a repeat with the same signal id is applied once,
// and is a duplicate also where what the first one did would refuse it.
//
// Problems: instance.unknown, instance.closed, signal.stale (its token or its
// expected version is not the instance's), limit.buffer, signal.*. None of them
// has changed anything.
func (r *Runtime) Signal(ctx context.Context, env signal.Envelope) (engine.Disposition, error) {
	body, err := env.Encode()
	if err != nil {
		return "", err
	}
	if r.pump.Standing(env.InstanceID) { // one before it is in the queue
		return r.enqueued(ctx, env, body)
	}
	out, err := r.pump.Turn(ctx, env, r.Now(), signalled)
	if k := problem.KindOf(err); err == nil || k != problem.Internal && k != problem.Unavailable && problem.CodeOf(err) != "definition.unknown" {
		return out.Disposition, err
	}
	r.Log.Warn("signal could not be applied at once and is queued", "instance", env.InstanceID, "signal", env.SignalID, "error", err)
	return r.enqueued(ctx, env, body)
}

// enqueued leaves a signal to the queue. What its sender sends next does not
// overtake it on this node.
func (r *Runtime) enqueued(ctx context.Context, env signal.Envelope, body []byte) (engine.Disposition, error) {
	return Queued, r.pump.Enqueue(env, func() error {
		return r.Store.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}})
	})
}

// signalled is the decision about a signal whose sender waits for the answer:
// what a queue would record as stale or late, he is told.
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

// Bounds of what one commit makes of an event.
const (
	eventFanOut = 500     // instances that it reaches
	eventBytes  = 4 << 20 // of the messages to them
)

// PublishEvent gives a CloudEvent to every instance that waits for it: those
// whose listen has its type, its filter and its correlation. It returns how
// many waits it fits. An instance gets it once, however many of its waits it
// fits and however often the event (source and id) is published. Problems: event.invalid, signal.too-large.
func (r *Runtime) PublishEvent(ctx context.Context, event json.RawMessage, headers map[string]string) (int, error) {
	var e struct {
		SpecVersion string `json:"specversion"`
		ID          string `json:"id"`
		Source      string `json:"source"`
		Type        string `json:"type"`
	}
	if err := jsonv2.Unmarshal(event, &e); err != nil {
		return 0, problem.Wrap(err, problem.Invalid, "event.invalid", "event is not a CloudEvent in JSON")
	}
	for name, v := range map[string]string{"id": e.ID, "source": e.Source, "type": e.Type} {
		if v == "" {
			return 0, problem.New(problem.Invalid, "event.invalid", "event has no %s", name)
		}
	}
	signalID := "ce-" + projections.KeyHash(e.Source+"\x00"+e.ID)
	if err := r.keep(ctx, e.Type, signalID, event); err != nil {
		return 0, err
	}
	sent := map[string]bool{} // by the token of the wait
	for _, eventType := range []string{e.Type, engine.AnyType} {
		if err := r.routeAll(ctx, eventType, event, signalID, headers, sent); err != nil {
			return len(sent), err
		}
	}
	return len(sent), r.reached(ctx, signalID, len(sent))
}

// looksMax bounds how often an event looks for waits while versions are
// published under it.
const looksMax = 100

// routeAll sends an event to every wait of its type. A migration may move a
// wait from a spec that was not looked at yet to one that was, and a newer
// version takes the place of another; so it looks until nothing has moved.
func (r *Runtime) routeAll(ctx context.Context, eventType string, event json.RawMessage, signalID string, headers map[string]string, sent map[string]bool) error {
	var before []string
	for range looksMax {
		specs, err := r.Store.WaitSpecs(ctx, eventType)
		if err != nil {
			return err
		}
		if before != nil && !mayHaveMoved(before, specs) {
			return nil
		}
		for _, spec := range specs {
			if err := r.route(ctx, eventType, spec, event, signalID, headers, sent); err != nil {
				return err
			}
		}
		if len(specs) == 0 || slices.Equal(before, specs) {
			return nil
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
		place, _ := projections.ParseSpec(spec)
		if other, ok := versions[place.Name]; ok && other != place.Version {
			return true
		}
		versions[place.Name] = place.Version
	}
	return false
}

// route sends an event to the instances that wait under one spec, but for the
// waits that it was sent to before.
func (r *Runtime) route(ctx context.Context, eventType, spec string, event json.RawMessage, signalID string, headers map[string]string, sent map[string]bool) error {
	place, ok := projections.ParseSpec(spec)
	if !ok {
		return fmt.Errorf("runtime: spec %q of a wait is not one", spec)
	}
	def, err := r.Definitions.Find(ctx, place.Name, place.Version)
	if err != nil {
		return err
	}
	key, ok, err := def.Correlate(place.Pointer, place.Arm, place.Bound, event)
	if err != nil || !ok {
		return err
	}
	after := ""
	for {
		waits, err := r.Store.Waits(ctx, eventType, spec, projections.KeyHash(key), after, eventFanOut)
		if err != nil || len(waits) == 0 {
			return err
		}
		var sends []store.Send
		var gets []string // tokens of the waits that these are for
		bytes := 0
		for _, w := range waits {
			if sent[w.Token] {
				continue
			}
			env := signal.Envelope{
				SignalID: signalID, InstanceID: w.InstanceID, Type: signal.ExternalSignal,
				OccurredAt: r.Now(), Headers: headers, Payload: event,
			}
			body, ok, err := []byte(nil), false, error(nil)
			if engine.IsSubscription(place.Pointer) {
				body, ok, err = r.begins(ctx, def, w, env)
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
			send := store.Send{Queue: store.Signals, Body: body}
			if causedBy(headers, place.Name) {
				send.Due = r.paced(selfEvent, place.Name)
			}
			sends, gets, bytes = append(sends, send), append(gets, w.Token), bytes+len(body)
			if bytes < eventBytes {
				continue
			}
			if err := r.deliverTo(ctx, sends, gets, sent); err != nil {
				return err
			}
			sends, gets, bytes = nil, nil, 0
		}
		if err := r.deliverTo(ctx, sends, gets, sent); err != nil {
			return err
		}
		after = waits[len(waits)-1].Token
		if len(waits) < eventFanOut {
			return nil
		}
	}
}

// deliverTo commits the messages to who waits for an event, and notes it.
func (r *Runtime) deliverTo(ctx context.Context, sends []store.Send, gets []string, sent map[string]bool) error {
	if len(sends) == 0 {
		return nil
	}
	if err := r.Store.Commit(ctx, store.Change{Send: sends}); err != nil {
		return err
	}
	for _, token := range gets {
		sent[token] = true
	}
	return nil
}

// Operate does what an operator asks, in one turn (B8). Problems:
// instance.unknown and those of engine.Operate.
func (r *Runtime) Operate(ctx context.Context, id string, op engine.Operation, output json.RawMessage, actor string) (snapshot.Snapshot, error) {
	now := r.Now()
	env := signal.Envelope{SignalID: newID(), InstanceID: id, Type: signal.ExternalSignal, OccurredAt: now, Headers: signal.ActorHeader(actor)}
	out, err := r.pump.Turn(ctx, env, now, func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
		if op == engine.RetrySame {
			var err error
			if in.Requests, err = r.requests(ctx, snap); err != nil {
				return nil, err
			}
		}
		return engine.Operate(def, *snap, op, output, in)
	})
	return out.Snapshot, err
}

// requests are the commands of an instance whose outcome is unknown, as their
// rows have them.
func (r *Runtime) requests(ctx context.Context, snap *snapshot.Snapshot) (map[int64]engine.Command, error) {
	list := map[int64]engine.Command{}
	for _, e := range snap.Effects {
		if !e.Unknown {
			continue
		}
		row, ok, err := r.Entry(ctx, snap.InstanceID, e.Command)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, problem.New(problem.Internal, "command.corrupt", "command %d of %s is not in its stream", e.Command, snap.InstanceID)
		}
		if list[e.Command], err = dispatch.Command(row); err != nil {
			return nil, err
		}
	}
	return list, nil
}

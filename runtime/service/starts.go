package service

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/schedule"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
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
func (s *Starts) Start(ctx context.Context, id string, start signal.Start, headers map[string]string) (string, bool, error) {
	id, created, _, err := s.StartOrSignal(ctx, id, start, headers)
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
func (s *Starts) StartOrSignal(ctx context.Context, id string, start signal.Start, headers map[string]string) (string, bool, engine.Disposition, error) {
	if err := start.Validate(); err != nil {
		return "", false, "", err
	}
	id = s.IDOf(id, start)
	if err := Reserved(id); err != nil {
		return "", false, "", err
	}
	if len(start.Input) == 0 {
		start.Input = json.RawMessage("null")
	}
	now := s.Now()
	env := signal.Envelope{
		SignalID: id, InstanceID: id, RuntimeProvider: signal.Provider, Type: signal.StartRequest, OccurredAt: now, Headers: headers,
	}
	if err := env.Validate(); err != nil {
		return "", false, "", err
	}
	if start.Signal != nil { // what a new instance would refuse, one that is there may take
		env.Principal = audit.By(ctx)
		first, there, err := s.Find(ctx, id, start)
		if err != nil || there {
			return s.signalFirst(ctx, first, start, env, err)
		}
	}
	out, err := s.Begin(ctx, s.Writer, env, start, now)
	if errors.Is(err, store.ErrDuplicate) {
		first, err := s.first(ctx, id, start)
		return s.signalFirst(ctx, first, start, env, err)
	}
	if err != nil || start.Signal == nil {
		return id, err == nil, "", err
	}
	return id, true, out.Disposition, nil
}

// IDOf is the id of the instance that a start with an id, or none, asks for. Without a start
// key it is another each time.
func (s *Starts) IDOf(id string, start signal.Start) string {
	switch {
	case id != "":
		return id
	case start.StartKey == "":
		return NewID()
	}
	return uuid.NewSHA1(startSpace, fmt.Appendf(nil, "%q %q %q", start.Definition, start.BusinessKey, start.StartKey)).String()
}

// signalFirst gives the signal of a start, if it has one, to the instance that
// is there.
func (s *Starts) signalFirst(ctx context.Context, id string, start signal.Start, env signal.Envelope, err error) (string, bool, engine.Disposition, error) {
	if err != nil || start.Signal == nil {
		return id, false, "", err
	}
	if env, err = start.Signal.Envelope(id, env); err != nil {
		return id, false, "", err
	}
	did, err := s.Signals.Signal(ctx, env)
	return id, false, did, err
}

// first finds the instance that the same request began before.
func (s *Starts) first(ctx context.Context, id string, start signal.Start) (string, error) {
	first, there, err := s.Find(ctx, id, start)
	if err == nil && !there {
		err = problem.New(problem.Unavailable, "instance.contended", "the instance of start key %q is being deleted", start.StartKey)
	}
	return first, err
}

// Codes of ids that a start cannot have.
const (
	CodeReserved = "instance.reserved-id"
	CodeTaken    = "instance.id-taken"
)

// Reserved refuses ids that are the engine's own.
func Reserved(id string) error {
	if !strings.HasPrefix(id, schedule.Prefix) {
		return nil
	}
	return problem.New(problem.Invalid, CodeReserved, "instance id %q begins with %q, as those of schedules do", id, schedule.Prefix).
		WithHint("choose another id")
}

// Find looks for the instance of a start: by its id, or, when that came from
// elsewhere, by its start key. An id that an instance of another definition has
// is the problem instance.id-taken.
func (s *Starts) Find(ctx context.Context, id string, start signal.Start) (string, bool, error) {
	row, err := s.Instances.Instance(ctx, id)
	return s.found(ctx, id, row.Definition, start, err)
}

// found is Find, when definition and err are what was found by the id.
func (s *Starts) found(ctx context.Context, id, definition string, start signal.Start, err error) (string, bool, error) {
	if err == nil && definition != start.Definition {
		return "", false, problem.New(problem.Conflict, CodeTaken, "instance %s is of definition %s, not %s", id, definition, start.Definition).
			WithHint("choose another id, or none")
	}
	if !errors.Is(err, store.ErrNotFound) {
		return id, err == nil, err
	}
	if start.StartKey == "" {
		return id, false, nil
	}
	row, err := s.Instances.Started(ctx, start.Definition, start.BusinessKey, start.StartKey)
	if errors.Is(err, store.ErrNotFound) {
		return id, false, nil
	}
	return row.ID, err == nil, err
}

// OnStart begins the instance that a message asks for, or gives the signal of the
// request to the one that is there. It has the mailbox of the instance, and the
// message is noted in the ledger: a definition that kills its process must not be
// loaded unnoted.
func (s *Starts) OnStart(ctx context.Context, d store.Delivery, env signal.Envelope, start signal.Start, now time.Time) error {
	// A delivery that was loaded from is noted; a look at the rows would not wait
	// for that.
	snap, part, err := s.Turns.Load(ctx, d, env.InstanceID)
	definition := ""
	if err == nil {
		definition = snap.Definition.Name
		part.Release()
	}
	id, there, err := s.found(ctx, env.InstanceID, definition, start, err)
	if err != nil {
		return err
	}
	if there {
		return s.startedBefore(ctx, d, env.InstanceID, id, env, start, now)
	}
	_, err = s.Begin(ctx, d, env, start, now)
	if errors.Is(err, store.ErrDuplicate) {
		id, err := s.first(ctx, env.InstanceID, start)
		if err != nil {
			return err
		}
		return s.startedBefore(ctx, d, env.InstanceID, id, env, start, now)
	}
	if err != nil {
		return s.Refused(ctx, d, env, err)
	}
	return nil
}

// startedBefore gives the signal of a start request to the instance that is
// there. Without one the request is a repeat and changes nothing. held is the
// instance whose mailbox the caller has.
func (s *Starts) startedBefore(ctx context.Context, d store.Delivery, held, id string, env signal.Envelope, start signal.Start, now time.Time) error {
	if start.Signal == nil {
		return d.Commit(ctx, store.Change{})
	}
	env, err := start.Signal.Envelope(id, env)
	if err != nil {
		return err
	}
	return s.Pump.Instead(ctx, d, held, env, now)
}

// Begin decides and commits the first turn of an instance.
func (s *Starts) Begin(ctx context.Context, to store.Writer, env signal.Envelope, start signal.Start, now time.Time) (*engine.Outcome, error) {
	incarnation := NewIncarnation()
	if s.Traced != nil {
		env.Headers = s.Traced(env.Headers, env.InstanceID, incarnation)
	}
	c, err := s.Turns.Begin(ctx, to, env, start, now, incarnation)
	s.Committed(c)
	if start.Signal != nil && problem.CodeOf(err) == "lifecycle.in-transition" { // nothing is, and none that comes again finds another
		err = problem.Wrap(err, problem.Conflict, "lifecycle.first-event", "the initial state of %s waits, so that it takes no first event: nothing was begun", start.Definition).
			WithHint("start the instance of the reference without an event, and trigger when it rests; or publish a policy that does not wait there")
	}
	return c.Outcome, err
}

// NewID is a UUID of version 7: unique, and in order of time, so that what
// belongs together lies together in the database.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// NewIncarnation is what tells an instance from all others, those of the same id
// before and after it included: 96 random bits.
func NewIncarnation() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Package turn makes turns: it loads what an instance remembers, has the engine decide about the signals that are
// there, and commits all that follows at once. A crash before the commit leaves everything as it was; after it, nothing
// is left to do.
//
// A turn launches nothing. It says what was committed, and its caller performs
// the commands that were claimed with it, and aborts those that it has settled.
package turn

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Definitions finds what instances run; definition.Catalogue is one.
type Definitions interface {
	Find(ctx context.Context, name, version string) (engine.Definition, error)
	Pinned(ctx context.Context, ref snapshot.Definition) (engine.Definition, error)
}

// Decision is a pure function of the engine, with its arguments bound. It
// changes neither the snapshot nor what that points to, and does not keep it.
type Decision = func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error)

// Step is the decision about a signal.
func Step(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
	return engine.Step(def, *snap, in)
}

// Config wires a decider. Extras have their part in every turn through Decided, Before and Amend; nil is none.
type Config struct {
	Writer      store.Writer
	Joins       bool   // a commit consumes several deliveries
	Node        string // its name
	Definitions Definitions
	Memory      *memory.Budget
	Log         *slog.Logger
	Now         func() time.Time

	Key       []byte // from which tokens are derived
	Epoch     int64  // of the database
	Limits    engine.Limits
	Engine    string // version of the program
	Lifecycle bool   // publish the lifecycle events of instances and tasks
	Cache     Cache
	Metrics   Metrics

	// Claims begins the claiming of one commit's commands.
	Claims func() Claims
	// Room takes the memory for a turn on a snapshot with signals of so many bytes. Who waits for it has the mailbox
	// of its instance, and nothing that those who have memory wait for.
	Room func(ctx context.Context, s *snapshot.Snapshot, payload int) (*memory.Part, error)
	// Blocks says that the signals of a queue behind this one wait for it, which comes again after an error.
	Blocks func(m store.Message, err error) bool
	// Decided sees what was decided about a signal.
	Decided func(out *engine.Outcome, about signal.Envelope)
	// Before may change what a turn sends, and Amend what it commits.
	Before func(ctx context.Context, out *engine.Outcome) error
	Amend  func(ctx context.Context, prev *snapshot.Snapshot, out *engine.Outcome, c *store.Change) error
	// Refused makes store.ErrStale of a refusal by what is out of date.
	Refused func(ctx context.Context, def engine.Definition, err error) error
	// Inside says how a decision goes on in its transaction, each time; nil = it asks for no step there.
	Inside func(out *engine.Outcome, in engine.Input) GoOn
}

// GoOn does steps of the application and decides what they come to.
type GoOn func(do store.Perform, decide func(*Signal, *snapshot.Snapshot) (*engine.Outcome, error)) (*engine.Outcome, error)

// Cache keeps what was committed last. What it gives may be stale, and is a copy until it is given back.
type Cache interface {
	Get(id string) *snapshot.Snapshot // nil = it is to be loaded
	Release(copied *snapshot.Snapshot)
	Put(s *snapshot.Snapshot, encoded int)
	Drop(id string)
}

// Metrics counts what turns do.
type Metrics interface {
	Count(did engine.Disposition) // a signal that needed no turn, by what was done with it
	Over(m Made)
}

// Made is a turn that is over. Nothing of it may be kept.
type Made struct {
	Began   time.Time
	To      store.Writer       // where it was to be committed: the delivery of a message, if it has one
	Prev    *snapshot.Snapshot // nil: there was none
	Signals []*Signal          // none: it was to begin an instance
	Out     *engine.Outcome    // nil: nothing was decided
	Err     error              // nil: it is committed
}

// Claims are the commands that a turn claims for this node, in its commit.
type Claims interface {
	// Claim finds a place for a command of an instance, or room to wait for one;
	// begun says that its first attempt begins with the commit.
	Claim(instance string, e *engine.Entry, at time.Time) (claimed, begun bool)
	// Cancel gives all of it back: the commit was not made.
	Cancel()
}

// Committed is what a turn has committed, for its caller to act on. The zero value is nothing.
type Committed struct {
	Unknown bool // nobody knows whether it was
	Outcome *engine.Outcome
	Rows    projections.Rows // of the outcome
	Claims  Claims
}

// Signal is a signal, and what has become of it.
type Signal struct {
	Envelope signal.Envelope
	Now      time.Time // when it came, as the instance sees it
	Decide   Decision
	Amend    func(*store.Change) // has the last word on what the turn commits; may be nil
	Delivery store.Delivery      // nil = no message
	Alone    bool                // it shares its commit with no other
	Ordered  bool                // it came through a queue, and keeps its place among those of the instance
	Behind   *Behind             // not nil: it waits for one that is tried again

	Out  *engine.Outcome // what it came to; nil while there is nothing
	Err  error
	Left bool // it has been applied, and its message is still to be consumed
}

// Behind is the error of a signal that waits for one before it.
type Behind struct{ Cause error }

func (e *Behind) Error() string {
	return "an earlier message of the instance is tried again: " + e.Cause.Error()
}

// loadingBytes is what is taken of the budget for a snapshot that is loaded: it is
// taken for the largest, for nobody knows how large it is.
const loadingBytes = 3 * snapshot.MaxBytes

// Decider makes turns. Many goroutines may call its methods; those of one instance at once compete for its version.
type Decider struct{ Config }

// New makes a decider.
func New(c Config) *Decider {
	return &Decider{c}
}

// StaleMax bounds how often one turn is decided again because another node was
// faster. Each round somebody has made progress, so it is reached only under extreme contention.
const StaleMax = 100

// Take makes one turn of signals of one instance, in their order; each has its outcome or its error then. False means
// that each needs a turn of its own. A version conflict loads and decides again (design 4.4).
func (d *Decider) Take(ctx context.Context, signals []*Signal) (c Committed, done bool) {
	id := signals[0].Envelope.InstanceID
	defer func() {
		if v := recover(); v != nil {
			fail(signals, d.Panicked(v, "instance", id, "signals", len(signals)))
			done = len(signals) == 1
		}
	}()
	for round := range StaleMax {
		snap, began := d.Cache.Get(id), d.Now()
		cached := snap != nil
		var loaded *memory.Part
		if !cached {
			var err error
			if snap, loaded, err = d.Load(ctx, d.source(signals), id); err != nil {
				fail(signals, Unknown(err, id))
				return c, true
			}
		}
		room, err := d.Room(ctx, snap, payloads(signals))
		loaded.Release()
		if err != nil {
			fail(signals, err)
			return c, true
		}
		c, err = d.try(ctx, snap, signals, room, began)
		if cached {
			d.Cache.Release(snap)
		}
		switch {
		case err == nil:
			return c, true
		case errors.Is(err, store.ErrUnknown), // deciding again would record what may be there as stale
			problem.CodeOf(err) == "store.locked": // or wait for the same lock
			fail(signals, err)
			return c, true
		case errors.Is(err, store.ErrStale):
			if len(signals) > 1 && round > 0 {
				return c, false
			}
		case len(signals) > 1 && !errors.Is(err, errUndecided):
			return c, false
		case !cached && errors.Is(err, errUndecided):
			d.Metrics.Over(Made{Began: began, Prev: snap, Signals: signals, Err: signals[0].Err})
			return c, true
		case errors.Is(err, store.ErrDuplicate), !cached:
			fail(signals, err)
			return c, true
		}
		// What another node has done since may be what the decision lacked.
		d.Cache.Drop(id)
	}
	fail(signals, problem.New(problem.Unavailable, "instance.contended", "instance %s changed %d times during one turn", id, StaleMax))
	return c, true
}

// Load reads a snapshot: nothing else in a node does. Its memory is taken until the part is released: when the
// snapshot is not needed any more, or that of a turn has been taken.
func (d *Decider) Load(ctx context.Context, from store.Writer, id string) (*snapshot.Snapshot, *memory.Part, error) {
	part, err := d.Memory.Loads.Take(ctx, loadingBytes)
	if err != nil {
		return nil, nil, err
	}
	snap, err := from.Load(ctx, id)
	if err != nil {
		part.Release()
		return nil, nil, err
	}
	return &snap, part, nil
}

// source is where a turn of signals reads: in the transaction of a delivery where there is one.
func (d *Decider) source(signals []*Signal) store.Writer {
	for _, s := range signals {
		if s.Delivery != nil {
			return s.Delivery
		}
	}
	return d.Writer
}

func payloads(signals []*Signal) (n int) {
	for _, s := range signals {
		n += len(s.Envelope.Payload)
	}
	return n
}

// try decides signals on a snapshot, commits what can be decided, and gives back the memory for it.
func (d *Decider) try(ctx context.Context, snap *snapshot.Snapshot, signals []*Signal, room *memory.Part, began time.Time) (Committed, error) {
	defer room.Release()
	t := turn{prev: snap, began: began}
	d.decide(ctx, &t, signals)
	if len(t.signals) == 0 {
		return Committed{}, errUndecided
	}
	if len(signals) > 1 && (d.Inside(t.out, t.in) != nil || slices.ContainsFunc(signals, func(s *Signal) bool { return s.Alone })) {
		return Committed{}, ErrUntouched // each needs a turn of its own
	}
	return d.write(ctx, &t)
}

// errUndecided says that nothing could be decided on a snapshot of the cache, which may be old.
var errUndecided = errors.New("turn: nothing was decided")

// fail ends signals with an error, but for those that wait for another anyway.
func fail(signals []*Signal, err error) {
	for _, s := range signals {
		if s.Err = err; s.Behind != nil {
			s.Err = s.Behind
		}
	}
}

// turn is what one or several decisions on a snapshot come to, in order, and where that is committed.
type turn struct {
	began    time.Time
	to       store.Writer
	prev     *snapshot.Snapshot // decided on; nil: there was none
	signals  []*Signal          // that were decided; the others have their errors. None for the first turn of an instance
	out      *engine.Outcome
	in       engine.Input // of the last
	startKey string       // of the first turn of an instance
}

// decide decides signal after signal, each on what the one before has made of the snapshot. One that is refused leaves
// no trace in what the others do. When one of the queue is to be tried again, those of the queue behind it wait for it.
//
// What a decision leaves is the next one's to change: a copy for each would be the most of the work for an instance
// with many branches. Where one is refused, which is rare, all are decided again with copies.
func (d *Decider) decide(ctx context.Context, t *turn, signals []*Signal) {
	if !d.decideAll(ctx, t, signals, true) {
		d.decideAll(ctx, t, signals, false)
	}
	for _, s := range t.signals {
		if s.Out != t.out {
			s.Out.Snapshot = t.out.Snapshot
		}
	}
}

// decideAll is decide. With inPlace, ok is false when a refused decision has spoilt the snapshot.
func (d *Decider) decideAll(ctx context.Context, t *turn, signals []*Signal, inPlace bool) (ok bool) {
	var behind *Behind
	var seen map[string]bool // signal ids recorded by this turn
	if len(signals) > 1 {
		seen = map[string]bool{}
	}
	if t.signals = signals[:0:1]; len(signals) > 1 { // which stay as they are, to be decided again
		t.signals = make([]*Signal, 0, len(signals))
	}
	snap := t.prev
	for _, s := range signals {
		s.Out, s.Err = nil, nil
		if s.Behind != nil {
			s.Err = s.Behind
			continue
		}
		if behind != nil && s.Ordered {
			s.Err = behind
			continue
		}
		own := inPlace && len(t.signals) > 0
		out, err := d.once(ctx, t, snap, s, own)
		if err == nil && len(signals) > 1 && recordedIn(seen, out) {
			err = store.ErrDuplicate
		}
		if err != nil {
			if own && !errors.Is(err, ErrUntouched) {
				return false
			}
			s.Err = err
			if s.Ordered && d.Blocks(s.Delivery.Message(), err) {
				behind = &Behind{Cause: err}
			}
			continue
		}
		if s.Out = out; len(t.signals) == 0 {
			t.out = out
		} else {
			t.out = t.out.Then(out)
		}
		t.signals = append(t.signals, s)
		snap = &t.out.Snapshot
	}
	return true
}

// ErrUntouched is in the error of a decision that was refused before it changed anything.
var ErrUntouched = errors.New("turn: refused before anything was changed")

// recordedIn reports whether an outcome records a signal that is among those seen, else it adds its own.
func recordedIn(seen map[string]bool, out *engine.Outcome) bool {
	for i := range out.Entries {
		if id := out.Entries[i].SignalID; id != "" && seen[id] {
			return true
		}
	}
	for i := range out.Entries {
		if id := out.Entries[i].SignalID; id != "" {
			seen[id] = true
		}
	}
	return false
}

// once decides one signal on one version of the snapshot. A panic is a problem like any other.
func (d *Decider) once(ctx context.Context, t *turn, snap *snapshot.Snapshot, s *Signal, own bool) (out *engine.Outcome, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = d.Panicked(v, "instance", snap.InstanceID, "signal", s.Envelope.SignalID)
		}
	}()
	def, err := d.Definitions.Pinned(ctx, snap.Definition)
	if err != nil {
		return nil, err
	}
	in := engine.Input{Signal: s.Envelope, Now: s.Now, Clock: d.Now(), Key: d.Key, Epoch: d.Epoch, Limits: d.Limits, Engine: d.Engine, Lifecycle: d.Lifecycle, Own: own}
	if out, err = s.Decide(def, snap, in); err != nil {
		if err = d.Refused(ctx, def, err); own || !errors.Is(err, store.ErrStale) {
			return nil, err
		}
		return d.once(ctx, t, snap, s, own)
	}
	d.Decided(out, s.Envelope)
	t.in = in
	return out, nil
}

// Panicked is the problem of a panic, which is logged.
func (d *Decider) Panicked(v any, where ...any) error {
	d.Log.Error("panic while a signal was decided", append(where, "panic", v, "stack", string(debug.Stack()))...)
	return problem.New(problem.Internal, "message.panic", "panic: %v", v)
}

// Unknown makes instance.unknown of the error of an instance that is not there.
func Unknown(err error, id string) error {
	if errors.Is(err, store.ErrNotFound) {
		return problem.Wrap(err, problem.NotFound, "instance.unknown", "instance %s does not exist", id)
	}
	return err
}

// Pause waits; false means that ctx ended first.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

package runtime

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/dispatch"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// committer is where a turn reads and writes: a delivery, or the store itself
// for a turn that no message caused.
type committer interface {
	Load(ctx context.Context, instanceID string) (snapshot.Snapshot, error)
	Commit(ctx context.Context, c store.Change) error
}

// decision is a pure function of the engine, with its arguments bound.
type decision = dispatch.Decision

// staleMax bounds how often one turn is decided again because another node was
// faster. Each round somebody has made progress, so it is reached only under
// extreme contention; the message is then released.
const staleMax = 100

// step is the decision about a signal.
func step(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
	return engine.Step(def, *snap, in)
}

// turn gives a signal to its instance, through the mailbox, and returns what it
// did when that is committed. A version conflict loads and decides again (design
// 4.4). A signal that was applied before is consumed without effect; its outcome
// has the disposition Duplicate.
func (r *Runtime) turn(ctx context.Context, c committer, env signal.Envelope, now time.Time, decide decision) (*engine.Outcome, error) {
	return r.submit(ctx, &post{env: env, now: now, decide: decide}, c)
}

// submit is turn for a post; c is its delivery, or the store.
func (r *Runtime) submit(ctx context.Context, p *post, c committer) (*engine.Outcome, error) {
	p.out, p.err, p.lead, p.wake = nil, nil, false, nil
	if d, ok := c.(store.Delivery); ok {
		p.d = d
	}
	r.mail.enter(p)
	r.attend(ctx, p)
	if p.out == nil {
		p.out = &engine.Outcome{}
	}
	return p.out, p.err
}

// serve decides and commits posts of one instance, in their order, and gives
// each its verdict. Where they cannot be committed together, each has a turn of
// its own. The caller has the mailbox.
func (r *Runtime) serve(ctx context.Context, posts []*post) {
	if posts[0].solo == nil && !posts[0].noted {
		r.follow(ctx, posts)
	}
	if !r.together(ctx, posts) {
		var behind *behindError
		for _, p := range posts {
			if p.behind == nil && p.queued() {
				p.behind = behind
			}
			r.together(ctx, []*post{p})
			if p.queued() && p.err != nil && r.fate(p.d.Message(), p.err).blocks() {
				behind = &behindError{cause: p.err}
			}
		}
	}
	for _, p := range posts {
		if p.err == nil {
			continue
		}
		did := Duplicate
		if errors.Is(p.err, errLate) {
			did = engine.Closed
		} else if err := r.repeated(ctx, p.env, p.err); !errors.Is(err, store.ErrDuplicate) {
			p.err = err
			continue
		}
		r.metrics.turns.WithLabelValues(string(did)).Inc()
		p.out, p.err = &engine.Outcome{Disposition: did}, nil
		if p.d != nil {
			p.err = p.d.Commit(ctx, store.Change{})
		}
	}
}

// together makes one turn of posts; false means that each needs its own.
func (r *Runtime) together(ctx context.Context, posts []*post) (done bool) {
	id := posts[0].env.InstanceID
	defer func() {
		if v := recover(); v != nil {
			fail(posts, r.panicked(v, "instance", id, "signals", len(posts)))
			done = len(posts) == 1
		}
	}()
	for _, p := range posts {
		if p.d != nil && !p.noted {
			r.Store.Enter(p.d)
			defer r.Store.Leave(p.d)
		}
	}
	for round := range staleMax {
		snap, cached := r.cache.get(id)
		var loaded *memory.Part
		if !cached {
			var err error
			if snap, loaded, err = r.load(ctx, r.source(posts), id); err != nil {
				fail(posts, unknown(err, id))
				return true
			}
		}
		room, err := r.room(ctx, snap, payloads(posts))
		loaded.Release()
		if err != nil {
			fail(posts, err)
			return true
		}
		err = r.try(ctx, snap, posts, room)
		switch {
		case err == nil:
			return true
		case errors.Is(err, store.ErrUnknown):
			fail(posts, err) // deciding again would record what may be there as stale
			return true
		case errors.Is(err, store.ErrStale):
			r.metrics.conflicts.Inc()
			if len(posts) > 1 && round > 0 {
				return false
			}
		case len(posts) > 1 && !errors.Is(err, errUndecided):
			return false
		case !cached && errors.Is(err, errUndecided):
			return true
		case errors.Is(err, store.ErrDuplicate), !cached:
			fail(posts, err)
			return true
		}
		// What another node has done since may be what the decision lacked.
		r.cache.drop(id)
	}
	fail(posts, problem.New(problem.Unavailable, "instance.contended", "instance %s changed %d times during one turn", id, staleMax))
	return true
}

// try decides posts on a snapshot, commits what can be decided, and gives back
// the memory for it.
func (r *Runtime) try(ctx context.Context, snap *snapshot.Snapshot, posts []*post, room *memory.Part) error {
	defer room.Release()
	t := turnOf{prev: snap}
	r.decide(ctx, &t, posts)
	if len(t.posts) == 0 {
		return errUndecided
	}
	return r.write(ctx, &t)
}

// errUndecided says that nothing could be decided on a snapshot of the cache,
// which may be old.
var errUndecided = errors.New("runtime: nothing was decided")

// fail ends posts with an error, but for those that wait for another anyway.
func fail(posts []*post, err error) {
	for _, p := range posts {
		if p.err = err; p.behind != nil {
			p.err = p.behind
		}
	}
}

// turnOf is a turn: what one or several decisions on a snapshot come to, in
// order, and where that is committed.
type turnOf struct {
	to       committer
	prev     *snapshot.Snapshot // decided on; nil: there was none
	posts    []*post            // that were decided; the others have their errors. None for the first turn of an instance
	out      *engine.Outcome
	in       engine.Input // of the last
	startKey string       // of the first turn of an instance
}

// decide decides post after post, each on what the one before has made of the
// snapshot. One that is refused leaves no trace in what the others do. When one
// of the queue is to be tried again, those of the queue behind it wait for it.
//
// What a decision leaves is the next one's to change: a copy for each would be
// the most of the work for an instance with many branches. Where one is refused,
// which is rare, all are decided again with copies.
func (r *Runtime) decide(ctx context.Context, t *turnOf, posts []*post) {
	if !r.decideAll(ctx, t, posts, true) {
		r.decideAll(ctx, t, posts, false)
	}
	for _, p := range t.posts {
		if p.out != t.out {
			p.out.Snapshot = t.out.Snapshot
		}
	}
}

// decideAll is decide. With inPlace, ok is false when a refused decision has
// spoilt the snapshot.
func (r *Runtime) decideAll(ctx context.Context, t *turnOf, posts []*post, inPlace bool) (ok bool) {
	var behind *behindError
	var seen map[string]bool // signal ids recorded by this turn
	if len(posts) > 1 {
		seen = map[string]bool{}
	}
	t.posts = make([]*post, 0, len(posts))
	snap := t.prev
	for _, p := range posts {
		p.out, p.err = nil, nil
		if p.behind != nil {
			p.err = p.behind
			continue
		}
		if behind != nil && p.queued() {
			p.err = behind
			continue
		}
		own := inPlace && len(t.posts) > 0
		out, err := r.once(ctx, t, snap, p, own)
		if err == nil && len(posts) > 1 && recordedIn(seen, out) {
			err = store.ErrDuplicate
		}
		if err != nil {
			if own && !errors.Is(err, dispatch.ErrOwnRetry) { // which is found before anything is changed
				return false
			}
			p.err = err
			if p.queued() && r.fate(p.d.Message(), err).blocks() {
				behind = &behindError{cause: err}
			}
			continue
		}
		if p.out = out; len(t.posts) == 0 {
			t.out = out
		} else {
			t.out = t.out.Then(out)
		}
		t.posts = append(t.posts, p)
		snap = &t.out.Snapshot
	}
	return true
}

// recordedIn reports whether an outcome records a signal that is among those
// seen, else it adds its own.
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

// repeated is store.ErrDuplicate when a signal was refused only because it has
// been applied: what it did may be why it cannot be done again (B7). Otherwise
// it is the cause.
func (r *Runtime) repeated(ctx context.Context, env signal.Envelope, cause error) error {
	if k := problem.KindOf(cause); env.Type != signal.ExternalSignal || k == problem.Internal || k == problem.Unavailable || k == problem.NotFound {
		return cause
	}
	recorded, err := r.Store.Recorded(ctx, env.InstanceID, env.SignalID)
	switch {
	case err != nil:
		return err
	case recorded:
		return store.ErrDuplicate
	}
	return cause
}

// Duplicate is the disposition of a signal that was recorded before (B7).
const Duplicate = engine.Duplicate

func unknown(err error, id string) error {
	if errors.Is(err, store.ErrNotFound) {
		return problem.Wrap(err, problem.NotFound, "instance.unknown", "instance %s does not exist", id)
	}
	return err
}

// once decides one post on one version of the snapshot. A panic is a problem
// like any other.
func (r *Runtime) once(ctx context.Context, t *turnOf, snap *snapshot.Snapshot, p *post, own bool) (out *engine.Outcome, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = r.panicked(v, "instance", snap.InstanceID, "signal", p.env.SignalID)
		}
	}()
	def, err := r.Definitions.Pinned(ctx, snap.Definition)
	if err != nil {
		return nil, err
	}
	in := engine.Input{Signal: p.env, Now: p.now, Clock: r.Now(), Key: r.key, Epoch: r.epoch, Limits: r.Limits, Lifecycle: r.Lifecycle, Own: own}
	if out, err = p.decide(def, snap, in); err != nil {
		return nil, err
	}
	trace(out, p.env.Headers[signal.HeaderLineage])
	t.in = in
	return out, nil
}

func (r *Runtime) panicked(v any, where ...any) error {
	r.Log.Error("panic while a signal was decided", append(where, "panic", v, "stack", string(debug.Stack()))...)
	return problem.New(problem.Internal, "message.panic", "panic: %v", v)
}

// write commits a turn over the version it was decided on, with the messages of
// its posts. When it is that of one signal alone and cannot be written, the
// instance faults instead.
func (r *Runtime) write(ctx context.Context, t *turnOf) error {
	t.to = r.source(t.posts)
	err := r.writeOut(ctx, t)
	if len(t.posts) == 1 && ownerOf(err) == byAuthor {
		err = r.faulted(ctx, t, err)
	}
	if err != nil {
		return err
	}
	for _, p := range t.posts {
		r.metrics.turn(p.out)
	}
	r.metrics.signals.Observe(float64(len(t.posts)))
	return nil
}

// writeOut writes the outcome of a turn and, when it is durable, starts the
// commands that this node claimed with it.
func (r *Runtime) writeOut(ctx context.Context, t *turnOf) error {
	out := t.out
	encoded, err := out.Snapshot.Encode()
	if err != nil {
		return output(err)
	}
	var mine []*dispatch.Job
	now := r.Now()
	claim := func(e engine.Entry) string {
		j, ok := r.Reserve(out.Snapshot.InstanceID, e.Position, *e.Command, now)
		if !ok {
			return ""
		}
		mine = append(mine, j)
		return r.Store.Node()
	}
	rows, err := projections.Fold(t.prev, out, t.startKey, claim)
	if err != nil {
		r.Cancel(mine...)
		return output(err)
	}
	dispatch.Begin(rows.Stream, mine)
	change := store.Change{
		Snapshot: &out.Snapshot, Encoded: encoded, Rows: rows,
		Runtime: store.Runtime{LastSignalID: t.in.Signal.SignalID, ExecutedBy: r.Store.Node(), ExecutedAt: now},
	}
	change.Over, change.Also = t.messages()
	t.amend(change.Rows.TaskEnds)
	if err = r.pin(ctx, out.Send); err == nil {
		change.Send, err = r.sends(rows, out, now)
		err = output(err)
	}
	if err == nil {
		var look []store.Send
		look, err = r.looks(&out.Snapshot, rows)
		change.Send = append(change.Send, look...)
	}
	if err == nil {
		change.Tasks, err = r.escalations(ctx, out)
	}
	if err == nil {
		err = unwritable(t.to.Commit(ctx, change))
	}
	if errors.Is(err, store.ErrUnknown) {
		r.cache.drop(out.Snapshot.InstanceID)
		r.Doubt(mine...)
		return err
	}
	if err != nil {
		r.Cancel(mine...)
		return err
	}
	r.cache.put(&out.Snapshot, len(encoded))
	r.Withdrawn(out.Snapshot.InstanceID, out.Settled)
	r.metrics.schedule(t.prev, out)
	r.Launch(mine...)
	return nil
}

// messages are the version that a turn was decided on and the messages that its
// commit consumes beside that of its delivery.
func (t *turnOf) messages() (over int64, also []store.Message) {
	for _, p := range t.posts {
		if p.d != nil && p.d != t.to {
			also = append(also, p.d.Message())
		}
	}
	if t.prev != nil {
		over = t.prev.Version
	}
	return over, also
}

// amend gives the posts the last word on how tasks end.
func (t *turnOf) amend(ends []projections.TaskEnd) {
	for _, p := range t.posts {
		if p.amend != nil {
			p.amend(ends)
		}
	}
}

// sends are the messages of a commit: the turn's own, and an announcement of
// every command that nobody claimed.
func (r *Runtime) sends(rows projections.Rows, outcome *engine.Outcome, now time.Time) ([]store.Send, error) {
	out := make([]store.Send, 0, len(outcome.Send))
	var next *time.Time // when the instance goes on
	for _, m := range outcome.Send {
		body, err := m.Envelope.Encode()
		if err != nil {
			return nil, err
		}
		send := store.Send{Queue: store.Signals, Body: body, Due: m.Due}
		if !m.Due.IsZero() {
			send.Queue = store.Schedule
		}
		if m.Envelope.Type == signal.InternalContinue {
			if next == nil {
				due := r.paced(selfLoop, outcome.Snapshot.Definition.Name)
				next = &due
			}
			send.Due = *next
		}
		out = append(out, send)
	}
	for _, e := range rows.Stream {
		if e.Processed == nil || *e.Processed || e.ClaimedBy != "" {
			continue
		}
		body, err := signal.ForCommand(e.InstanceID, e.Position, 0, now, time.Time{}).Encode()
		if err != nil {
			return nil, err
		}
		out = append(out, store.Send{Queue: store.Commands, Body: body})
	}
	return out, nil
}

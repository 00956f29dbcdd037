package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
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
type decision func(def engine.Definition, snap snapshot.Snapshot, in engine.Input) (engine.Outcome, error)

// staleMax bounds how often one turn is decided again because another node was
// faster. Each round somebody has made progress, so it is reached only under
// extreme contention; the message is then released.
const staleMax = 100

// step is the decision about a signal.
func step(def engine.Definition, snap snapshot.Snapshot, in engine.Input) (engine.Outcome, error) {
	return engine.Step(def, snap, in)
}

// turn decides and commits once. A version conflict loads and decides again
// (design 4.4). A signal that was applied before is consumed without effect;
// its outcome has the disposition Duplicate.
func (r *Runtime) turn(ctx context.Context, c committer, env signal.Envelope, now time.Time, decide decision) (engine.Outcome, error) {
	snap, cached := r.cache.get(env.InstanceID)
	for range staleMax {
		if !cached {
			var err error
			if snap, err = c.Load(ctx, env.InstanceID); err != nil {
				return engine.Outcome{}, unknown(err, env.InstanceID)
			}
		}
		out, err := r.once(ctx, c, snap, env, now, decide)
		if err == nil {
			return out, nil
		}
		if !cached {
			err = r.repeated(ctx, env, err)
		}
		switch {
		case errors.Is(err, store.ErrStale):
			r.metrics.conflicts.Inc()
		case errors.Is(err, store.ErrDuplicate):
			r.metrics.turns.WithLabelValues(string(Duplicate)).Inc()
			return engine.Outcome{Disposition: Duplicate}, r.consumed(ctx, c)
		case !cached || errors.Is(err, store.ErrUnknown):
			return out, err // deciding again would record what may be there as stale
		}
		// What another node has done since may be what the decision lacked.
		r.cache.drop(env.InstanceID)
		cached = false
	}
	return engine.Outcome{}, problem.New(problem.Unavailable, "instance.contended", "instance %s changed %d times during one turn", env.InstanceID, staleMax)
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
const Duplicate engine.Disposition = "duplicate"

// consumed ends a delivery without writing anything else.
func (r *Runtime) consumed(ctx context.Context, c committer) error {
	if d, ok := c.(store.Delivery); ok {
		return d.Commit(ctx, store.Change{})
	}
	return nil
}

func unknown(err error, id string) error {
	if errors.Is(err, store.ErrNotFound) {
		return problem.Wrap(err, problem.NotFound, "instance.unknown", "instance %s does not exist", id)
	}
	return err
}

// once decides on one version of the snapshot and tries to commit.
func (r *Runtime) once(ctx context.Context, c committer, snap snapshot.Snapshot, env signal.Envelope, now time.Time, decide decision) (engine.Outcome, error) {
	def, err := r.Definitions.Pinned(ctx, snap.Definition)
	if err != nil {
		return engine.Outcome{}, err
	}
	in := engine.Input{Signal: env, Now: now, Clock: r.Now(), Key: r.key, Epoch: r.epoch, Limits: r.Limits, Lifecycle: r.Lifecycle}
	out, err := decide(def, snap, in)
	if err != nil {
		return engine.Outcome{}, err
	}
	if err := r.commit(ctx, c, &snap, &out, "", in); err != nil {
		return engine.Outcome{}, err
	}
	return out, nil
}

// commit writes an outcome and, when it is durable, starts the commands that
// this node claimed with it.
func (r *Runtime) commit(ctx context.Context, c committer, prev *snapshot.Snapshot, out *engine.Outcome, startKey string, in engine.Input) error {
	encoded, err := out.Snapshot.Encode()
	if err != nil {
		if problem.CodeOf(err) == "limit.snapshot" && prev != nil {
			return r.overgrown(ctx, c, prev, out, err, in)
		}
		return err
	}
	var mine []*job
	now := r.Now()
	claim := func(e engine.Entry) string {
		j := newJob(out.Snapshot.InstanceID, e.Position, *e.Command)
		if !r.can(e.Command.Target) || !r.reserve(j, now) {
			return ""
		}
		mine = append(mine, j)
		return r.Store.Node()
	}
	rows, err := projections.Fold(prev, *out, startKey, claim)
	if err != nil {
		r.dispatch.cancel(mine...)
		return err
	}
	begin(rows.Stream, mine)
	change := store.Change{
		Snapshot: &out.Snapshot, Encoded: encoded, Rows: rows,
		Runtime: store.Runtime{LastSignalID: in.Signal.SignalID, ExecutedBy: r.Store.Node(), ExecutedAt: now},
	}
	if err = r.pin(ctx, out.Send); err == nil {
		change.Send, err = sends(rows, out.Send, now)
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
		err = c.Commit(ctx, change)
	}
	if errors.Is(err, store.ErrUnknown) {
		r.cache.drop(out.Snapshot.InstanceID)
		r.doubt(mine...)
		return err
	}
	if err != nil {
		r.dispatch.cancel(mine...)
		return err
	}
	r.cache.put(out.Snapshot, len(encoded))
	r.withdrawn(out.Snapshot.InstanceID, out.Settled)
	r.metrics.turn(out)
	r.metrics.schedule(prev, out)
	r.launch(mine...)
	return nil
}

// overgrown faults an instance whose snapshot has passed its limit; the turn
// that made it so is not applied.
func (r *Runtime) overgrown(ctx context.Context, c committer, prev *snapshot.Snapshot, out *engine.Outcome, cause error, in engine.Input) error {
	if prev.Status == snapshot.Faulted {
		return cause
	}
	var err error
	*out, err = engine.FaultWith(*prev, snapshot.Error{
		Type: engine.ErrorBase + engine.ErrRuntime, Status: 500, Title: "Limit exceeded", Detail: cause.Error(),
	}, in)
	if err != nil {
		return err
	}
	return r.commit(ctx, c, prev, out, "", in)
}

// sends are the messages of a commit: the turn's own, and an announcement of
// every command that nobody claimed.
func sends(rows projections.Rows, messages []engine.Message, now time.Time) ([]store.Send, error) {
	out := make([]store.Send, 0, len(messages))
	for _, m := range messages {
		body, err := m.Envelope.Encode()
		if err != nil {
			return nil, err
		}
		q := store.Signals
		if !m.Due.IsZero() {
			q = store.Schedule
		}
		out = append(out, store.Send{Queue: q, Body: body, Due: m.Due})
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

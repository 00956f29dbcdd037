package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/dispatch"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// turn gives a signal to its instance, through the mailbox, and returns what it
// did when that is committed. A version conflict loads and decides again (design
// 4.4). A signal that was applied before is consumed without effect; its outcome
// has the disposition Duplicate.
func (r *Runtime) turn(ctx context.Context, c turn.Committer, env signal.Envelope, now time.Time, decide turn.Decision) (*engine.Outcome, error) {
	return r.submit(ctx, &post{Signal: turn.Signal{Envelope: env, Now: now, Decide: decide}}, c)
}

// submit is turn for a post; c is its delivery, or the store.
func (r *Runtime) submit(ctx context.Context, p *post, c turn.Committer) (*engine.Outcome, error) {
	p.Out, p.Err, p.lead, p.wake = nil, nil, false, nil
	if d, ok := c.(store.Delivery); ok {
		p.Delivery = d
	}
	r.mail.enter(p)
	r.attend(ctx, p)
	if p.Out == nil {
		p.Out = &engine.Outcome{}
	}
	return p.Out, p.Err
}

// serve decides and commits posts of one instance, in their order, and gives
// each its verdict. Where they cannot be committed together, each has a turn of
// its own. The caller has the mailbox.
func (r *Runtime) serve(ctx context.Context, posts []*post) {
	if posts[0].solo == nil && !posts[0].noted {
		r.follow(ctx, posts)
	}
	if !r.together(ctx, posts) {
		var behind *turn.Behind
		for _, p := range posts {
			if p.Behind == nil && p.queued() {
				p.Behind = behind
			}
			r.together(ctx, []*post{p})
			if p.queued() && p.Err != nil && r.fate(p.Delivery.Message(), p.Err).blocks() {
				behind = &turn.Behind{Cause: p.Err}
			}
		}
	}
	for _, p := range posts {
		if p.Err == nil {
			continue
		}
		did := Duplicate
		if errors.Is(p.Err, turn.ErrLate) {
			did = engine.Closed
		} else if err := r.repeated(ctx, p.Envelope, p.Err); !errors.Is(err, store.ErrDuplicate) {
			p.Err = err
			continue
		}
		r.turns.Count(did)
		p.Out, p.Err = &engine.Outcome{Disposition: did}, nil
		if p.Delivery != nil {
			p.Err = p.Delivery.Commit(ctx, store.Change{})
		}
	}
}

// together makes one turn of posts; false means that each needs its own.
func (r *Runtime) together(ctx context.Context, posts []*post) (done bool) {
	signals := posts[0].alone[:0]
	for _, p := range posts {
		p.Ordered = p.queued()
		signals = append(signals, &p.Signal)
		if p.Delivery != nil && !p.noted {
			r.Store.Enter(p.Delivery)
			defer r.Store.Leave(p.Delivery)
		}
	}
	c, done := r.turns.Take(ctx, signals)
	r.committed(c)
	return done
}

// committed acts on what a turn has committed.
func (r *Runtime) committed(c turn.Committed) {
	if c.Outcome == nil {
		return
	}
	jobs := c.Claims.(*claims).jobs
	if c.Unknown {
		r.Doubt(jobs...)
		return
	}
	r.Withdrawn(c.Outcome.Snapshot.InstanceID, c.Outcome.Settled)
	r.Launch(jobs...)
}

// begin decides and commits the first turn of an instance.
func (r *Runtime) begin(ctx context.Context, to turn.Committer, env signal.Envelope, start signal.Start, now time.Time) (*engine.Outcome, error) {
	c, err := r.turns.Begin(ctx, to, env, start, now, newIncarnation())
	r.committed(c)
	return c.Outcome, err
}

// claims are the commands that the dispatcher takes of a turn.
type claims struct {
	dispatcher *dispatch.Dispatcher
	jobs       []*dispatch.Job
	one        [1]*dispatch.Job // jobs, mostly
}

// Claim implements turn.Claims.
func (c *claims) Claim(instance string, e *engine.Entry, at time.Time) (claimed, begun bool) {
	j, ok := c.dispatcher.Reserve(instance, e.Position, *e.Command, at)
	if !ok {
		return false, false
	}
	if c.jobs == nil {
		c.jobs = c.one[:0]
	}
	c.jobs = append(c.jobs, j)
	return true, j.Begun()
}

// Cancel implements turn.Claims.
func (c *claims) Cancel() { c.dispatcher.Cancel(c.jobs...) }

// turning wires the node's turns, and the part that extras have in them.
func (r *Runtime) turning() turn.Config {
	return turn.Config{
		Store: r.Store, Node: r.Store.Node(), Definitions: r.Definitions, Memory: r.Memory, Log: r.Log, Now: r.Now,
		Key: r.key, Epoch: r.epoch, Limits: r.Limits, Lifecycle: r.Lifecycle, CacheBytes: r.CacheBytes,
		Claims:  func() turn.Claims { return &claims{dispatcher: r.Dispatcher} },
		Blocks:  func(m store.Message, err error) bool { return r.fate(m, err).blocks() },
		Decided: func(out *engine.Outcome, about signal.Envelope) { trace(out, about.Headers[signal.HeaderLineage]) },
		Before:  r.before, Amend: r.amend,
	}
}

// before names the versions of the instances that a turn starts, and delays what
// a definition causes to itself.
func (r *Runtime) before(ctx context.Context, out *engine.Outcome) error {
	var next *time.Time // when the instance goes on
	for i := range out.Send {
		if out.Send[i].Envelope.Type != signal.InternalContinue {
			continue
		}
		if next == nil {
			due := r.paced(selfLoop, out.Snapshot.Definition.Name)
			next = &due
		}
		out.Send[i].Due = *next
	}
	return r.pin(ctx, out.Send)
}

// amend has an instance look for kept events that its waits are for, and hands
// tasks on that are overdue.
func (r *Runtime) amend(ctx context.Context, out *engine.Outcome, c *store.Change) error {
	look, err := r.looks(&out.Snapshot, c.Rows)
	if err != nil {
		return err
	}
	c.Send = append(c.Send, look...)
	c.Tasks, err = r.escalations(ctx, out)
	return err
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

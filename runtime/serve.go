package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
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

// attend blocks until a post has been served, or serves it and what waits with
// it. A post whose ctx ends before anybody serves it is taken back.
func (r *Runtime) attend(ctx context.Context, p *post) {
	if !p.lead && !r.woken(ctx, p) {
		return
	}
	id := p.Envelope.InstanceID
	posts := r.mail.take(id, r.Store.Joins())
	defer r.mail.done(id)
	defer func() { // whatever happens here, nobody waits for it for ever
		for _, other := range posts {
			if other != p {
				other.wake <- false
			}
		}
	}()
	if p.solo != nil {
		p.Err = r.soloOf(ctx, p)
		r.sendAgain(ctx, posts)
		return
	}
	if len(posts) > 1 { // the others must not end with this one's caller
		var cancel context.CancelFunc
		ctx, cancel = r.detached(ctx)
		defer cancel()
	}
	if p.Delivery != nil {
		r.handlers <- struct{}{}
	}
	r.serve(ctx, posts)
	if p.Delivery != nil {
		<-r.handlers // before the pause of a store in trouble
	}
	r.sendAgain(ctx, posts)
}

// woken waits until a post is to serve; false: it has been served, or taken back.
func (r *Runtime) woken(ctx context.Context, p *post) bool {
	select {
	case lead := <-p.wake:
		return lead
	case <-ctx.Done():
		if r.mail.leave(p) {
			p.Err = ctx.Err()
			return false
		}
		return <-p.wake
	}
}

// soloOf runs what has the instance for itself.
func (r *Runtime) soloOf(ctx context.Context, p *post) error {
	if r.follow(ctx, []*post{p}); p.Behind != nil {
		return p.Behind
	}
	return r.guarded(p.Delivery, func() error { return p.solo(ctx) })
}

// detached is a context that ends with the node's work, not with the caller.
func (r *Runtime) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.mu.Lock()
	work := r.work
	r.mu.Unlock()
	if work == nil {
		return out, cancel
	}
	stop := context.AfterFunc(work, cancel)
	return out, func() { stop(); cancel() }
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

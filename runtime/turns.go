package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/aqueduct-engine/aqueduct/correlation"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/dispatch"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// committed acts on what a turn has committed.
func (r *Runtime) committed(c turn.Committed) {
	if c.Outcome == nil {
		return
	}
	jobs := c.Claims.(*claims).jobs
	if c.Unknown {
		r.Resolve(jobs...)
		return
	}
	r.Tell(&c)
	r.Withdrawn(c.Outcome.Snapshot.InstanceID, c.Outcome.Settled)
	r.Launch(jobs...)
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
	return true, j.Counted
}

// Cancel implements turn.Claims.
func (c *claims) Cancel() { c.dispatcher.Cancel(c.jobs...) }

// turning wires the node's turns, and the part that extras have in them.
func (r *Runtime) turning() turn.Config {
	return turn.Config{
		Writer: r.Store.Writer, Joins: r.Store.Joins, Node: r.Store.Nodes.Node(), Definitions: r.Definitions, Memory: r.Memory, Log: r.Log, Now: r.Now,
		Key: r.key, Epoch: r.epoch, Limits: r.Limits, Engine: r.Engine, Lifecycle: r.Lifecycle, Cache: r.cache,
		Metrics: r.counts, Room: r.room,
		Claims:  func() turn.Claims { return &claims{dispatcher: r.Dispatcher} },
		Blocks:  r.retries.Blocks,
		Decided: func(out *engine.Outcome, about signal.Envelope) { trace(out, about.Headers[signal.HeaderLineage]) },
		Before:  r.before, Amend: r.amend, Inside: r.steps.goOn,
		Refused: newestOnly{r.Definitions}.refused,
	}
}

// newestOnly keeps decisions by a policy that is not the newest from standing.
type newestOnly struct{ Definitions }

// failed forgets the policy by which a turn was decided that another has made stale.
func (l newestOnly) failed(out *engine.Outcome, err error) {
	if d, ok := l.Definitions.(publisher); ok && out != nil && out.Policy != nil && errors.Is(err, store.ErrStale) {
		d.Outdated(out.Policy)
	}
}

// refused says why a decision was refused. No commit finds out that it was decided by a
// policy which is not the newest: the store is asked.
func (l newestOnly) refused(ctx context.Context, def engine.Definition, refused error) error {
	d, ok := l.Definitions.(publisher)
	if !ok {
		return refused
	}
	newer, err := d.Newer(ctx, def)
	switch {
	case err != nil:
		return problem.Wrap(err, problem.Unavailable, "policy.unread", "whether a newer policy is published cannot be read, and %v", refused)
	case newer:
		return store.ErrStale
	}
	return refused
}

// before names the versions of the instances that a turn starts, and delays what
// a definition causes to itself.
func (r *Runtime) before(ctx context.Context, out *engine.Outcome) error {
	if err := together(out); err != nil {
		return err
	}
	var next *time.Time // when the instance goes on
	for i := range out.Send {
		if t := out.Send[i].Envelope.Type; t != signal.InternalContinue && t != signal.InternalContinueAll {
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

// amend says when the instance is due, for which events it waits and by what it is found, has it look for
// kept events that its waits are for, and hands tasks on that are overdue.
func (r *Runtime) amend(ctx context.Context, prev *snapshot.Snapshot, out *engine.Outcome, c *store.Change) error {
	correlation.Waits(&c.Rows, prev, &out.Snapshot)
	if err := searchable(ctx, r.Definitions, prev, &out.Snapshot, &c.Rows); err != nil {
		return err
	}
	c.Runtime.Due = firstDue(&out.Snapshot)
	look, err := r.Inbox.Looks(prev, &out.Snapshot, c.Rows)
	if err != nil {
		return err
	}
	c.Send = append(c.Send, look...)
	c.Tasks, err = r.Escalations(ctx, out)
	return err
}

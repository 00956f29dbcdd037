package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// insideTarget is where an event is published to the instances of this
// installation: before it goes outside, and whatever state that is in.
const insideTarget = "inside"

// destination is where a command goes first.
func (r *Runtime) destination(j *job) engine.Destination {
	if j.command.Target == engine.TargetEvent {
		return engine.Destination{Target: insideTarget}
	}
	return r.Performer.Destination(j.command)
}

// goesOn reports whether a command has been performed at its first destination
// only.
func (r *Runtime) goesOn(j *job) bool {
	if j.command.Target != engine.TargetEvent || j.inside {
		return false
	}
	j.inside = true
	return r.Performer.Can(engine.TargetEvent)
}

// began counts the attempt of a command that has waited for its place, before
// it is made: only what is in flight is an attempt. It reports false when
// nobody wants the command any more.
func (r *Runtime) began(ctx context.Context, j *job) (bool, error) {
	if j.begun {
		return true, nil
	}
	j.begun = true
	node := r.Store.Node()
	err := r.insist(ctx, func() error { return r.Store.Commit(ctx, store.Change{Claims: []store.Claim{j.hold(node, node)}}) })
	if errors.Is(err, store.ErrTaken) {
		return false, nil
	}
	j.begun = err == nil
	return j.begun, err
}

// Delays after which a command is looked at again for which no node has had
// room.
const (
	putDelay    = time.Second
	putDelayMax = time.Minute
)

// put sends the announcement of a command for which this node has no room once
// more, for later: the older the command, the later. That is no attempt at it.
func (r *Runtime) put(ctx context.Context, d store.Delivery, j *job, row projections.Entry) error {
	m := d.Message()
	now := r.Now()
	if !j.late.After(now) {
		r.metrics.givenUp.Inc()
		return r.giveUp(ctx, d, j, undeliveredCode(j), notSent("room on a node for commands to "+j.to.Target))
	}
	delay := min(max(now.Sub(row.CreatedAt)/2, putDelay), putDelayMax)
	r.metrics.crowded.Inc()
	return d.Commit(ctx, store.Change{Send: []store.Send{{
		Queue: store.Commands, Body: m.Body, Due: now.Add(delay), Priority: m.Priority, Attempts: m.Attempts,
	}}})
}

// giveBackBatch is how many commands one commit gives back.
const giveBackBatch = 100

// giveBack announces commands again that this node has claimed and will not
// perform. What cannot be given back is an orphan when the node has ended.
func (r *Runtime) giveBack(ctx context.Context, jobs ...*job) {
	for len(jobs) > 0 && ctx.Err() == nil {
		n := min(len(jobs), giveBackBatch)
		if err := r.insist(ctx, func() error { return r.announce(ctx, jobs[:n]) }); err != nil && n > 1 {
			for _, j := range jobs[:n] { // one of them is done with, and refused all
				r.giveBack(ctx, j)
			}
		} else if err != nil && !errors.Is(err, store.ErrTaken) && ctx.Err() == nil {
			r.Log.Error("command could not be given back", "instance", jobs[0].instance, "command", jobs[0].position, "error", err)
		}
		jobs = jobs[n:]
	}
}

// announce gives commands back in one commit.
func (r *Runtime) announce(ctx context.Context, jobs []*job) error {
	var all store.Change
	for _, j := range jobs {
		claim := j.hold("", r.Store.Node())
		change, err := r.again(j, 0, claim)
		if err != nil {
			return err
		}
		all.Claims = append(all.Claims, change.Claims...)
		all.Send = append(all.Send, change.Send...)
	}
	return r.Store.Commit(ctx, all)
}

// expired gives up commands that have waited for a place for too long.
func (r *Runtime) expired(jobs []*job) {
	go func() {
		defer r.dispatch.busy.Done()
		for _, j := range jobs {
			r.untrack(j)
			err := r.giveUpWaiting(r.work, j)
			if err != nil && r.work.Err() == nil {
				r.Log.Error("command could not be given up; it waits again", "instance", j.instance, "command", j.position, "error", err)
				r.giveBack(r.work, j)
			}
		}
	}()
}

// giveUpWaiting ends a command that was not sent.
func (r *Runtime) giveUpWaiting(ctx context.Context, j *job) error {
	r.metrics.givenUp.Inc()
	e := notSent(j.why)
	if j.command.Token == "" {
		return r.undelivered(ctx, j, e)
	}
	return r.answer(ctx, j, payload(nil, &e), step)
}

// notSent is the error of a command that has waited for a place until it was
// given up.
func notSent(why string) snapshot.Error {
	return snapshot.Error{
		Type: engine.ErrorBase + engine.ErrCommunication, Status: 503, Title: "Not sent",
		Detail: fmt.Sprintf("the command waited until it was given up, and was not sent: it waited for %s", why),
	}
}

// opened tells that a breaker has opened.
func (r *Runtime) opened(to engine.Destination) {
	r.Log.Warn("circuit breaker is open: nothing is sent there for a while", "target", to.Target, "for", r.BreakFor)
	r.metrics.opened.WithLabelValues(r.metrics.host(to)).Inc()
}

// size is what a command costs while it waits.
func (j *job) size() int { return len(j.command.Input) + jobBytes }

// jobBytes is what a command costs beside its input.
const jobBytes = 512

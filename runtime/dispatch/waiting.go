package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/admission"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// insideTarget is where an event is published to the instances of this
// installation: before it goes outside, and whatever state that is in.
const insideTarget = "inside"

// destination is where a command goes first.
func (o outside) destination(j *Job) engine.Destination {
	if j.command.Target == engine.TargetEvent {
		return engine.Destination{Target: insideTarget}
	}
	return o.Performer.Destination(j.command)
}

// goesOn reports whether a command has been performed at its first destination only.
func (o outside) goesOn(j *Job) bool {
	if j.command.Target != engine.TargetEvent || j.inside {
		return false
	}
	j.inside = true
	return o.Performer.Can(engine.TargetEvent)
}

// began counts the attempt of a command that has waited for its place, before it is made: only what is in flight is
// an attempt. It reports false when nobody wants the command any more.
func (r Record) began(ctx context.Context, j *Job) (bool, error) {
	if j.Counted {
		return true, nil
	}
	err := retryCommit(ctx, func() error { return r.begin(ctx, []*Job{j}) })
	if errors.Is(err, store.ErrTaken) {
		return false, nil
	}
	return err == nil, err
}

// begin is began for several, in one commit. Where that is refused, each is on its own.
func (r Record) begin(ctx context.Context, jobs []*Job) error {
	var all store.Change
	for _, j := range jobs {
		j.Counted = true
		all.Claims = append(all.Claims, j.hold(r.Node, r.Node))
	}
	err := ctx.Err() // then what gave them their places was given up with the node's work
	if err == nil {
		err = r.Writer.Commit(ctx, all)
	}
	for _, j := range jobs {
		j.Counted = err == nil
	}
	return err
}

// uncounted takes back the attempt of a command that has been performed at its first destination only, and is to wait
// for a place at the next: what the death of the node costs there is none. It is counted when it begins, and then it is
// known whether anybody wants it still.
func (r Record) uncounted(ctx context.Context, j *Job) bool {
	j.Counted, j.unknown = false, true // there it is done
	claim := j.hold(r.Node, r.Node)
	return retryCommit(ctx, func() error { return r.Writer.Commit(ctx, store.Change{Claims: []store.Claim{claim}}) }) == nil
}

// Delays after which a command is looked at again for which no node had room.
const (
	putDelay    = time.Second
	putDelayMax = time.Minute
)

// put sends the announcement of a command for which this node has no room once
// more, for later: the older the command, the later. That is no attempt at it.
func (r Record) put(ctx context.Context, delivery store.Delivery, j *Job, row projections.Entry, env signal.Envelope) error {
	m, now := delivery.Message(), r.Now()
	body, err := env.Encode() // as it was, or of a dead letter that was replayed: it says since when
	if err != nil {
		return err
	}
	if !j.Late.After(now) {
		r.GivenUp.Inc()
		return r.giveUp(ctx, delivery, j, undeliveredCode(j), notSent("room on a node for commands to "+j.To.Target))
	}
	delay := min(max(now.Sub(row.CreatedAt)/2, putDelay), putDelayMax)
	r.Crowded.Inc()
	again := m.Again(now.Add(delay), m.Attempts)
	again.Body = body
	return delivery.Commit(ctx, store.Change{Send: []store.Send{again}})
}

// giveBackBatch is how many commands one commit gives back.
const giveBackBatch = 100

// giveBack announces commands again that this node has claimed and will not
// perform. What cannot be given back is an orphan when the node has ended.
func (r Record) giveBack(ctx context.Context, jobs ...*Job) {
	for len(jobs) > 0 && ctx.Err() == nil {
		n := min(len(jobs), giveBackBatch)
		if err := retryCommit(ctx, func() error { return r.announce(ctx, jobs[:n]) }); err != nil && n > 1 {
			for _, j := range jobs[:n] { // one of them is done with, and refused all
				r.giveBack(ctx, j)
			}
		} else if err != nil && !errors.Is(err, store.ErrTaken) && ctx.Err() == nil {
			r.Log.Error("command could not be given back", "instance", jobs[0].Instance, "command", jobs[0].position, "error", err)
		}
		jobs = jobs[n:]
	}
}

// announce gives commands back in one commit.
func (r Record) announce(ctx context.Context, jobs []*Job) error {
	var all store.Change
	for _, j := range jobs {
		change, err := r.Again(j, 0, j.hold("", r.Node))
		if err != nil {
			return err
		}
		all.Claims = append(all.Claims, change.Claims...)
		all.Send = append(all.Send, change.Send...)
	}
	return r.Writer.Commit(ctx, all)
}

// expired gives up commands that have waited for a place for too long.
func (d *Dispatcher) expired(jobs []*Job) {
	now := d.Now()
	for _, j := range jobs {
		d.performing.untrack(j)
		err := d.giveUpWaiting(d.work, j, now)
		if err != nil && d.work.Err() == nil {
			d.Log.Error("command could not be given up; it waits again", "instance", j.Instance, "command", j.position, "error", err)
			d.Record.giveBack(d.work, j)
		}
	}
}

// giveUpWaiting ends a command that was not sent, unless somebody has spoken of it, or ended it, while it waited.
func (d *Dispatcher) giveUpWaiting(ctx context.Context, j *Job, now time.Time) error {
	begun, wanted := d.Now(), false
	err := retryCommit(ctx, func() error {
		row, ok, err := d.Record.Entry(ctx, j.Instance, j.position)
		wanted = ok && row.ClaimedBy == d.Node && row.Attempts == j.failures
		return err
	})
	if err != nil || !wanted {
		return err
	}
	if now.Sub(j.Late)+d.Now().Sub(begun) > stillMax { // it could not be sent for a while, whoever had had room for it
		d.Record.giveBack(ctx, j)
		return nil
	}
	d.GivenUp.Inc()
	j.unknown = j.unknown || j.inside || j.deliveries > 0 // it was done in part, or its consumer has got it before
	e := notSent(j.Why)
	if j.command.Token == "" {
		return d.Record.undelivered(ctx, j, e)
	}
	return d.Record.answer(ctx, j, Failed(&e, j.unknown, j.open), turn.Step, true)
}

// notSent is the error of a command that has waited for a place until it was given up.
func notSent(why string) snapshot.Error {
	return snapshot.Error{
		Type: engine.ErrorBase + engine.ErrCommunication, Status: 503, Title: "Not sent",
		Detail: fmt.Sprintf("the command waited until it was given up, and was not sent: it waited for %s", why),
	}
}

// WaitsFor says what a command waits for on this node before it is sent; "" = it does not wait here.
func (d *Dispatcher) WaitsFor(instance string, position int64) string {
	d.performing.mu.Lock()
	defer d.performing.mu.Unlock()
	for j := d.performing.jobs[place{instance, position}]; j != nil; j = j.next {
		if why := d.Admission.WaitsFor(&j.Ticket); why != "" {
			return why
		}
	}
	return ""
}

// opened tells that a breaker has opened.
func (d *Dispatcher) opened(to admission.Destination) {
	d.Log.Warn("circuit breaker is open: nothing is sent there for a while", "target", to.Target, "for", d.BreakFor)
	d.Opened(to)
}

// Costs of a command.
const (
	jobBytes   = 512 // beside its input
	callFactor = 3   // for each byte that is performed: as it is, as it is sent, as it is searched for secrets
)

package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// OnCommand handles a message of the command queue: claim, then perform.
func (d *Dispatcher) OnCommand(ctx, stop context.Context, delivery store.Delivery, env signal.Envelope) error {
	position, err := signal.CommandPosition(env.Payload)
	if err != nil {
		return problem.Wrap(err, problem.Invalid, "signal.invalid", "announcement of a command")
	}
	row, ok, err := d.Record.Entry(ctx, env.InstanceID, position)
	if err != nil {
		return err
	}
	if !ok || row.Processed == nil {
		return problem.New(problem.NotFound, "command.unknown", "instance %s has no command at position %d", env.InstanceID, position)
	}
	if *row.Processed || row.ClaimedBy != "" {
		return delivery.Commit(ctx, store.Change{}) // done with, or performed by somebody
	}
	j, err := jobOf(row)
	if err != nil {
		return err
	}
	if outdated(env, j, row) {
		return delivery.Commit(ctx, store.Change{})
	}
	if !d.outside.can(j.command.Target) {
		return d.Record.pass(ctx, delivery, j)
	}
	if over, err := d.Record.keptAnswer(ctx, delivery, j); over || err != nil {
		if err == nil {
			err = delivery.Commit(ctx, store.Change{})
		}
		return err
	}
	if _, again := d.Performer.Backoff(j.failures, j.Key); j.failures > 0 && !again && j.command.Ack == 0 {
		return d.Record.exhausted(ctx, delivery, j, row.LastError)
	}
	if j.command.Ack != 0 && j.attempt() > 1 {
		_, j.age = d.AckTimes(ctx, j.command, 0, 1)
		if !env.DueAt.Before(env.OccurredAt.Add(j.age)) { // by when it was to be, however late it comes
			return d.Record.unacknowledged(ctx, delivery, j)
		}
	}
	if stop.Err() != nil {
		return delivery.Release(ctx, context.Canceled)
	}
	if replayed(row, env) { // which may be old
		env.OccurredAt = d.Now()
	}
	m := delivery.Message()
	if late := d.Now().Sub(latest(m.DueAt, m.EnqueuedAt, env.OccurredAt)); late > stillMax && j.command.Ack == 0 {
		env.OccurredAt = latest(env.OccurredAt, j.nextAt).Add(late) // it has not waited while nobody could perform it
	}
	if !d.reserve(j, env.OccurredAt) {
		return d.Record.put(ctx, delivery, j, row, env)
	}
	if err := d.Record.claim(ctx, delivery, j, row); err != nil {
		if errors.Is(err, store.ErrUnknown) {
			d.Resolve(j)
			return err
		}
		d.Admission.Cancel(&j.Ticket)
		if errors.Is(err, store.ErrTaken) {
			return delivery.Commit(ctx, store.Change{})
		}
		return err
	}
	d.Launch(j)
	return nil
}

// replayed says that an announcement is a dead letter that was sent again, as it was when its command was given up.
// Rows of older versions do not say when that was.
func replayed(row projections.Entry, env signal.Envelope) bool {
	return row.GivenUpAt.IsZero() && row.Attempts == 0 && row.NextAttemptAt.IsZero() && row.LastError != "" || !env.OccurredAt.After(row.GivenUpAt)
}

// stillMax is how late a node may be for what it is to do before that says that nobody could do it: the database was
// away, or the nodes stood still. More than putDelayMax: so late is by itself who found no room.
const stillMax = 2 * time.Minute

func latest(all ...time.Time) time.Time { return slices.MaxFunc(all, time.Time.Compare) }

// Entry is what a stream has at a position; ok is false when that is nothing.
func (r Record) Entry(ctx context.Context, instance string, position int64) (row projections.Entry, ok bool, err error) {
	rows, err := r.Streams.Stream(ctx, instance, position-1, 1)
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	if err != nil || len(rows) == 0 || rows[0].Position != position {
		return projections.Entry{}, false, err
	}
	return rows[0], true, nil
}

// jobOf is a command as its row has it. The problem is command.corrupt.
func jobOf(row projections.Entry) (*Job, error) {
	var c engine.Command
	err := json.Unmarshal(row.Data, &c)
	j := newJob(row.InstanceID, row.Position, c)
	j.resume(row)
	if err != nil {
		return j, problem.Wrap(err, problem.Internal, "command.corrupt", "command %d of %s", j.position, j.Instance)
	}
	return j, nil
}

// resume takes from the row what attempts before have come to.
func (j *Job) resume(row projections.Entry) {
	j.failures, j.unknown, j.deliveries, j.delivered, j.nextAt = row.Attempts, row.Unknown, row.Deliveries, row.DeliveredAt, row.NextAttemptAt
	j.open = strings.HasPrefix(row.LastError, NoticeOpen) || row.Deliveries > 0 // a consumer has it
	if !row.GivenUpAt.IsZero() {                                                // its dead letter was replayed
		j.failures = 0
	}
	if !strings.HasPrefix(row.LastError, NoticeGivenUp) { // else it begins anew
		j.note, j.since = row.LastError, row.CreatedAt
	}
}

func (r Record) claim(ctx context.Context, delivery store.Delivery, j *Job, row projections.Entry) error {
	if row.DeliveredAt.IsZero() || j.failures > 0 { // the last that is known is no delivery
		return delivery.Commit(ctx, store.Change{Claims: []store.Claim{j.hold(r.Node, "")}})
	}
	j.note = fmt.Sprintf("%s: delivery %d was not acknowledged", NoticeReminder, j.deliveries)
	if err := r.Noted(ctx, j.command, NoticeReminder, store.Change{Claims: []store.Claim{j.hold(r.Node, "")}}); err != nil {
		return err
	}
	_ = delivery.Commit(ctx, store.Change{}) // an announcement that comes again finds the command claimed
	return nil
}

// hold is the claim of a node on a command, with the attempt that has begun.
func (j *Job) hold(node, expect string) store.Claim {
	c := store.Claim{
		InstanceID: j.Instance, Position: j.position, Expect: expect, Owner: node, Attempts: j.failures, Error: j.note,
		Delivered: j.delivered, Deliveries: j.deliveries, Unknown: j.unknown,
	}
	if expect == "" {
		c.ExpectNext = j.nextAt // one that was given up since it was read has none
	}
	if j.Counted {
		c.Attempts++
	}
	return c
}

// exhausted answers a command whose attempts are used up without an answer: each was lost with its process.
func (r Record) exhausted(ctx context.Context, delivery store.Delivery, j *Job, last string) error {
	return r.giveUp(ctx, delivery, j, undeliveredCode(j), snapshot.Error{
		Type: engine.ErrorBase + engine.ErrRuntime, Status: 500, Title: "Attempts used up",
		Detail: strings.TrimSuffix(fmt.Sprintf("%d attempts were lost or failed: %s", j.failures, strings.TrimPrefix(last, NoticeOpen)), ": "),
	})
}

// giveUp ends a command by an error for who waits for it, else by a dead letter.
func (r Record) giveUp(ctx context.Context, delivery store.Delivery, j *Job, reason string, e snapshot.Error) error {
	j.unknown = j.unknown || j.deliveries > 0 // its consumer has got it
	if j.command.Token == "" {
		err := delivery.Commit(ctx, r.Abandon(j, store.Claim{ExpectNext: j.nextAt}, reason, e))
		if errors.Is(err, store.ErrTaken) { // by another announcement, or it was announced anew since
			return delivery.Commit(ctx, store.Change{})
		} else if err == nil {
			r.Dead.Inc()
		}
		return err
	}
	if err := r.answer(ctx, j, Failed(&e, j.unknown, j.open), turn.Step, true); err != nil {
		return err
	}
	return delivery.Commit(ctx, store.Change{})
}

// passMax bounds how often a command that no node can perform is offered again
// (about half an hour); then it fails with a configuration error.
const passMax = 30

// pass leaves a command to a node that can perform it.
func (r Record) pass(ctx context.Context, delivery store.Delivery, j *Job) error {
	m := delivery.Message()
	if m.Attempts >= passMax {
		return r.giveUp(ctx, delivery, j, undeliveredCode(j), snapshot.Error{
			Type: engine.ErrorBase + engine.ErrConfiguration, Status: 400, Title: "No performer",
			Detail: fmt.Sprintf("no node can perform %q", j.command.Target),
		})
	}
	return delivery.Commit(ctx, store.Change{Send: []store.Send{m.Again(r.Now().Add(r.Backoff(m.Attempts+1, j.Key)), m.Attempts+1)}})
}

package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/google/uuid"
)

// The row of a command that asks for it is its acknowledgement (D5): pending
// until a performer has succeeded, then delivered, then processed. What
// delivers it again is the announcement of its next attempt, which is committed
// with each delivery; nobody looks for rows that are late.

// Notices of D5: what a row says of a command that is performed again.
const (
	noticeRetry    = "AckRetryPending"             // it was not delivered, or the consumer asks for it
	noticeReminder = "AckReminderProcessedPending" // it was delivered, and not processed in time
)

// Reasons of dead letters that announce commands that nobody waits for.
const (
	codeAckMissing = "ack.missing"
	codeAckFailed  = "ack.failed"
)

// ackSpace is the namespace of the dead letters of failed commands: a repeated
// acknowledgement makes no second one.
var ackSpace = uuid.MustParse("2f0c3a57-6a0e-5a43-9d2c-4f2f8e2f9b1d")

// ackTries is how often an acknowledgement is tried again whose commit had an
// unknown outcome. What it writes is guarded.
const ackTries = 20

// errSettled says that a command is done with.
var errSettled = errors.New("the command is settled")

// Acknowledge takes what a consumer says of a command that it got, by its
// place in the stream of its instance. It is durable when Acknowledge returns: applied; buffered
// or queued as by runtime.Signal; or duplicate, when the command is settled
// already, by whatever. It may come at any time, also while a node still
// delivers the command.
//
// Problems: ack.invalid, command.unknown, ack.unexpected (the command asks for
// none), signal.too-large, limit.buffer.
func (d *Dispatcher) Acknowledge(ctx context.Context, instance string, position int64, ack engine.Ack) (engine.Disposition, error) {
	if err := ack.Check(); err != nil {
		return "", err
	}
	var did engine.Disposition
	for try := 0; ; try++ {
		j, row, err := d.expecting(ctx, instance, position)
		if err == nil && *row.Processed {
			err = errSettled
		}
		if err == nil {
			did, err = d.acknowledge(ctx, j, row, ack)
		}
		if settled := errors.Is(err, errSettled) || errors.Is(err, store.ErrTaken) || errors.Is(err, store.ErrDuplicate); settled {
			if did, err = engine.Duplicate, nil; try > 0 {
				did = engine.Applied // by the commit whose outcome was unknown
			}
		}
		if errors.Is(err, store.ErrUnknown) && try < ackTries && turn.Pause(ctx, 50*time.Millisecond) {
			continue
		}
		if err != nil {
			return "", err
		}
		label := string(ack.Outcome)
		if did == engine.Duplicate {
			label = string(engine.Duplicate)
		}
		d.metrics.acks.WithLabelValues(label).Inc()
		return did, nil
	}
}

// expecting finds a command that asks for an acknowledgement.
func (d *Dispatcher) expecting(ctx context.Context, instance string, position int64) (*Job, projections.Entry, error) {
	row, ok, err := d.Entry(ctx, instance, position)
	if err != nil {
		return nil, projections.Entry{}, err
	}
	if !ok || row.Processed == nil {
		return nil, projections.Entry{}, problem.New(problem.NotFound, "command.unknown",
			"instance %s has no command at position %d", instance, position)
	}
	j, err := jobOf(row)
	if err == nil && j.command.Ack <= 0 {
		err = problem.New(problem.Conflict, "ack.unexpected", "command %d of %s asks for no acknowledgement", position, instance)
	}
	return j, row, err
}

// acknowledge applies an acknowledgement to a command that is open. Whoever
// performs the command has it no more: what comes of that attempt does not
// count.
func (d *Dispatcher) acknowledge(ctx context.Context, j *Job, row projections.Entry, ack engine.Ack) (engine.Disposition, error) {
	if row.ClaimedBy != "" || !awaiting(row) {
		j.deliveries++ // the delivery that is spoken of has not been counted yet
	}
	var change store.Change
	var err error
	switch ack.Outcome {
	case engine.AckDelivered:
		change, err = d.again(j, j.command.Ack, store.Claim{Any: true, Delivered: d.Now(), Deliveries: j.deliveries, Error: row.LastError})
	case engine.AckRetry:
		change, err = d.again(j, ack.Delay, store.Claim{
			Any: true, Deliveries: j.deliveries, Error: noticeRetry + ": the consumer asks for it once more",
		})
	case engine.AckProcessed:
		if j.command.Token != "" {
			return d.acknowledged(ctx, j, payload(ack.Output), ack.Actor)
		}
		change.Claims = []store.Claim{{InstanceID: j.Instance, Position: j.position, Any: true, Done: true}}
	case engine.AckFailed:
		e := ack.Failure()
		if j.command.Token != "" {
			return d.acknowledged(ctx, j, failure(&e, false), ack.Actor)
		}
		change = d.abandon(j, store.Claim{Any: true}, codeAckFailed, e)
		change.DeadLetter.ID = uuid.NewSHA1(ackSpace, fmt.Appendf(nil, "%s/%d", j.Instance, j.position)).String()
	}
	if err == nil {
		err = d.Writer.Commit(ctx, change)
	}
	if err != nil {
		return "", err
	}
	if change.DeadLetter != nil {
		d.Log.Error("command failed at its consumer and is a dead letter now", "instance", j.Instance, "command", j.position, "target", j.command.Target)
		d.Dead.Inc()
	}
	return engine.Applied, nil
}

// acknowledged gives a command's result to who waits for it, as a turn of the
// instance, which settles the row. Nothing is recorded when it is settled; and
// a suspended instance keeps one, by its signal id.
func (d *Dispatcher) acknowledged(ctx context.Context, j *Job, result json.RawMessage, actor string) (engine.Disposition, error) {
	now := d.Now()
	env := signal.Envelope{
		SignalID: j.command.Token + "/ack", InstanceID: j.Instance, RuntimeProvider: signal.Provider, Type: signal.TaskCompleted,
		WaitingToken: j.command.Token, OccurredAt: now, Headers: signal.ActorHeader(actor), Payload: result,
	}
	body, err := env.Encode()
	if err != nil {
		return "", err
	}
	out, err := d.Turn(ctx, env, now, func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
		if _, waits := snap.Wait(j.command.Token); !waits {
			return nil, errSettled
		}
		return turn.Step(def, snap, in)
	})
	var p *problem.Error
	undecided := errors.As(err, &p) && (p.Kind == problem.Internal || p.Kind == problem.Unavailable || p.Code == "definition.unknown")
	if !undecided {
		return out.Disposition, err
	}
	d.Log.Warn("acknowledgement could not be applied at once and is queued", "instance", j.Instance, "command", j.position, "error", err)
	return engine.Queued, d.Writer.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}})
}

// kept reports whether a suspended instance has kept the answer to a wait.
func kept(s *snapshot.Snapshot, token string) bool {
	return slices.ContainsFunc(s.Buffer, func(b snapshot.Buffered) bool { return b.Token == token })
}

// awaiting reports whether the last that is known of a command is that it was
// delivered.
func awaiting(row projections.Entry) bool { return !row.DeliveredAt.IsZero() && row.Attempts == 0 }

// delivered records that the consumer has got a command. When it has spoken
// already, that counts, and this does not.
func (d *Dispatcher) delivered(ctx context.Context, j *Job) error {
	note := ""
	if j.deliveries > 0 {
		note = j.note
	}
	change, err := d.again(j, j.command.Ack, store.Claim{
		Expect: d.Node, Delivered: d.Now(), Deliveries: j.deliveries + 1, Error: note,
	})
	if err != nil {
		return err
	}
	return d.ended(ctx, change)
}

// overtaken reports whether a consumer has spoken of a command while this node
// delivered it: then how the delivery ended is of no interest.
func (d *Dispatcher) overtaken(ctx context.Context, j *Job) (bool, error) {
	if j.command.Ack <= 0 {
		return false, nil
	}
	over := false
	err := d.retryCommit(ctx, func() error {
		row, ok, err := d.Entry(ctx, j.Instance, j.position)
		over = ok && row.ClaimedBy != d.Node
		return err
	})
	return over, err
}

// outdated reports whether an announcement of an acknowledged command is not
// the last one made of it, or finds the answer kept by a suspended instance.
func (d *Dispatcher) outdated(ctx context.Context, delivery store.Delivery, env signal.Envelope, j *Job, row projections.Entry) (bool, error) {
	if j.command.Ack <= 0 {
		return false, nil
	}
	if !env.DueAt.Equal(row.NextAttemptAt) {
		return true, nil
	}
	if j.command.Token == "" || j.deliveries == 0 {
		return false, nil
	}
	snap, part, err := d.Load(ctx, delivery, j.Instance)
	if err != nil {
		return false, err
	}
	defer part.Release()
	return kept(snap, j.command.Token), nil
}

// remind says that a command is performed again, and why.
func (d *Dispatcher) remind(j *Job, row projections.Entry) {
	if j.command.Ack <= 0 || j.attempt() == 1 {
		return
	}
	notice := noticeRetry
	if awaiting(row) {
		notice = noticeReminder
		d.metrics.redelivered.WithLabelValues(j.command.Target).Inc()
	}
	d.Log.Info("command is delivered again", "notice", notice, "instance", j.Instance, "command", j.position, "target", j.command.Target,
		"deliveries", j.deliveries, "failures", j.failures)
}

// unacknowledged gives up a command that was delivered AckMax times.
func (d *Dispatcher) unacknowledged(ctx context.Context, delivery store.Delivery, j *Job) error {
	j.unknown = true // it was delivered
	return d.giveUp(ctx, delivery, j, codeAckMissing, snapshot.Error{
		Type: engine.ErrorBase + engine.ErrTimeout, Status: 504, Title: "Not acknowledged",
		Detail: fmt.Sprintf("%d deliveries were not acknowledged within %s each", j.deliveries, j.command.Ack),
	})
}

package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/dispatch"
	"github.com/aqueduct-engine/aqueduct/runtime/service"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// codeAckFailed is the reason of the dead letter of a command that nobody waits
// for, and that its consumer has failed.
const codeAckFailed = "ack.failed"

// acknowledger takes what consumers say of commands.
type acknowledger struct {
	dispatcher *dispatch.Dispatcher
	notes      *ackNotes
	acks       *prometheus.CounterVec
}

func newAcknowledger(d *dispatch.Dispatcher, n *ackNotes) *acknowledger {
	return &acknowledger{d, n, counters("aqueduct_acknowledgements_total", "Acknowledgements of commands.", "outcome", "delivered", "processed", "failed", "retry", "duplicate")}
}

// ackTries is how often an acknowledgement is tried again whose commit had an
// unknown outcome. What it writes is guarded.
const ackTries = 20

var (
	errSettled = errors.New("the command is settled")                        // it is done with
	errMoved   = errors.New("the command is not as it was when it was read") // somebody has it since, or not any more
)

// Acknowledge takes what a consumer says of a command that it got, by its
// place in the stream of its instance. It is durable when Acknowledge returns:
// applied; buffered or queued as by Signal; or duplicate, when the command is
// settled already, by whatever. It may come at any time, also while a node still
// delivers the command.
//
// Problems: ack.invalid, command.unknown, ack.unexpected (the command asks for
// none), ack.wrong-consumer (it is another's), signal.too-large, limit.buffer.
func (a *acknowledger) Acknowledge(ctx context.Context, instance string, position int64, said ack.Ack) (engine.Disposition, error) {
	return a.take(ctx, place{instance, position}, said, func(_ projections.Entry, c engine.Command) error {
		if c.Ack <= 0 {
			return problem.New(problem.Conflict, "ack.unexpected", "command %d of %s asks for no acknowledgement", position, instance)
		}
		if is := ack.Consumer(c.Pointer); said.Consumer != "" && said.Consumer != is {
			return problem.New(problem.Conflict, "ack.wrong-consumer", "command %d of %s is for %s, not for %.64q", position, instance, is, said.Consumer).
				WithHint("the path of an acknowledgement is in the header Aqueduct-Ack of the consumer's own delivery")
		}
		return nil
	})
}

// place is where a command is.
type place struct {
	instance string
	position int64
}

// take settles a command, or has it tried again, as somebody says who may; by is the
// audit of it.
func (a *acknowledger) take(ctx context.Context, at place, said ack.Ack, may func(projections.Entry, engine.Command) error, by ...store.Audit) (engine.Disposition, error) {
	if err := said.Check(); err != nil {
		return "", err
	}
	var did engine.Disposition
	unknown := false // a commit may have been made
	for try := 0; ; try++ {
		for i := range by {
			by[i].ID = uuid.NewString() // the commit before may have been made
		}
		row, c, err := a.command(ctx, at)
		if err == nil {
			if err = may(row, c); unknown && problem.CodeOf(err) == codeGivenUp {
				err = errSettled
			}
		}
		if err == nil {
			err = settled(row, said)
		}
		if err == nil {
			did, err = a.acknowledge(ctx, row, said, by)
		}
		if errors.Is(err, errSettled) || did == engine.Duplicate {
			if did, err = engine.Duplicate, nil; unknown {
				did = engine.Applied // by the commit whose outcome was unknown
			}
		}
		if unknown && problem.KindOf(err) == problem.Unavailable { // it cannot be looked at, and may be done
			err = store.Unknown(err)
		}
		unknown = unknown || errors.Is(err, store.ErrUnknown)
		again := errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrTaken) || errors.Is(err, errMoved)
		if again && try < ackTries && turn.Pause(ctx, 50*time.Millisecond) {
			continue // it is looked at again
		}
		if err != nil {
			return "", err
		}
		label := string(said.Outcome)
		if did == engine.Duplicate {
			label = string(engine.Duplicate)
			if err := a.repeated(ctx, row, said); err != nil {
				return "", err
			}
		}
		a.acks.WithLabelValues(label).Inc()
		return did, nil
	}
}

// command finds a command, which may be settled. Problems: command.unknown, command.corrupt.
func (a *acknowledger) command(ctx context.Context, at place) (projections.Entry, engine.Command, error) {
	row, ok, err := a.dispatcher.Record.Entry(ctx, at.instance, at.position)
	if err != nil {
		return row, engine.Command{}, err
	}
	if !ok || row.Processed == nil {
		return row, engine.Command{}, problem.New(problem.NotFound, "command.unknown",
			"instance %s has no command at position %d", at.instance, at.position)
	}
	c, err := commandOf(row)
	return row, c, err
}

// commandOf is a command as its row has it. The problem is command.corrupt.
func commandOf(row projections.Entry) (engine.Command, error) {
	j, _, err := dispatch.Spoken(row, 0)
	return j.Command(), err
}

// givenUp reports whether a command is what a dead letter announces, and nobody performs it.
func givenUp(row projections.Entry) bool {
	return row.ClaimedBy == "" && (!row.GivenUpAt.IsZero() || strings.HasPrefix(row.LastError, dispatch.NoticeGivenUp))
}

// settled is errSettled when what is said of a command comes too late: it is done with, or
// given up, and an operator has its dead letter. That it was processed after all counts.
func settled(row projections.Entry, said ack.Ack) error {
	if *row.Processed || said.Outcome != ack.Processed && givenUp(row) {
		return errSettled
	}
	return nil
}

// job is a command that is open, and how often it was delivered. One that is past its age
// was replayed since, which has begun a new one.
func (a *acknowledger) job(ctx context.Context, row projections.Entry) (*dispatch.Job, int, error) {
	c, err := commandOf(row)
	if err != nil {
		return nil, 0, err
	}
	_, age := a.notes.times(ctx, c, 0, 1)
	if now := a.dispatcher.Now(); !row.CreatedAt.Add(age).After(now) {
		row.CreatedAt = now
	}
	return dispatch.Spoken(row, age)
}

// leased is the change by which what is said of a command that a worker has claimed is kept:
// the claim stays, and with it the announcement for the end of the lease.
func leased(row projections.Entry, deliveries int, delivered time.Time, note string) store.Change {
	return store.Change{Claims: []store.Claim{{
		InstanceID: row.InstanceID, Position: row.Position, ExpectNext: row.NextAttemptAt, NextAt: row.NextAttemptAt, Unknown: row.Unknown,
		Delivered: delivered, Deliveries: deliveries, Error: note,
	}}}
}

// noteAsked is the note of a command that its consumer wants once more.
const noteAsked = dispatch.NoticeRetry + ": the consumer asks for it once more"

// again has a command delivered again, later or at once, as is said: but while a worker has
// claimed it, not before the lease ends, unless they say so themselves.
func (a *acknowledger) again(j *dispatch.Job, row projections.Entry, said ack.Ack, deliveries int) (store.Change, error) {
	now := a.dispatcher.Now()
	who := ack.Claimant(row.LastError, row.NextAttemptAt, now)
	switch {
	case said.Outcome == ack.Delivered && who != "":
		return leased(row, max(deliveries, 1), now, row.LastError), nil
	case said.Outcome == ack.Delivered:
		return a.dispatcher.Record.Again(j, j.Command().Ack, store.Claim{
			Any: true, ExpectNext: row.NextAttemptAt, Delivered: now, Deliveries: max(deliveries, 1), Error: row.LastError,
		})
	case who != "" && who != said.Actor:
		return leased(row, deliveries, time.Time{}, ack.Under(row.LastError, noteAsked)), nil
	}
	return a.dispatcher.Record.Again(j, said.Delay, store.Claim{Any: true, ExpectNext: row.NextAttemptAt, Deliveries: deliveries, Error: noteAsked})
}

// acknowledge applies an acknowledgement to a command that is open. The node that
// performs the command has it no more: what comes of that attempt does not
// count.
func (a *acknowledger) acknowledge(ctx context.Context, row projections.Entry, said ack.Ack, by []store.Audit) (engine.Disposition, error) {
	j, deliveries, err := a.job(ctx, row)
	if err != nil {
		return "", err
	}
	c := j.Command()
	var change store.Change
	switch said.Outcome {
	case ack.Delivered, ack.Retry:
		change, err = a.again(j, row, said, deliveries)
	case ack.Processed:
		if c.Token != "" {
			return a.acknowledged(ctx, c, row, dispatch.Payload(said.Output), said, deliveries, by)
		}
		change.Claims = []store.Claim{{InstanceID: c.Instance, Position: c.Position, Any: true, Done: true}}
	case ack.Failed:
		if c.Token != "" {
			return a.acknowledged(ctx, c, row, failure(row, said), said, deliveries, by)
		}
		change = a.dispatcher.Record.Abandon(j, store.Claim{Any: true, ExpectNext: row.NextAttemptAt}, codeAckFailed, said.Failure())
		change.DeadLetter.Attempts = row.Attempts + row.Deliveries
	}
	if err != nil {
		return "", err
	}
	n := saidOf(c, said, deliveries)
	change.Audit = by
	n.NextAttempt = noteOf(c, &change).NextAttempt
	open := func() error { // to what is said, after the turn before
		now, _, err := a.command(ctx, place{c.Instance, c.Position})
		if err == nil {
			err = settled(now, said)
		}
		if err == nil && (said.Outcome != ack.Processed || said.Settles) && (now.ClaimedBy != row.ClaimedBy || !now.NextAttemptAt.Equal(row.NextAttemptAt)) {
			err = errMoved
		}
		return err
	}
	did, err := a.notes.note(ctx, c, &change, n, entryOf(c, said.Outcome), said.Signal, open)
	if err != nil || did == engine.Duplicate {
		return did, err
	}
	if change.DeadLetter != nil {
		a.dispatcher.Log.Error("command failed at its consumer and is a dead letter now", "instance", c.Instance, "command", c.Position, "target", c.Target)
		a.dispatcher.Dead.Inc()
	}
	return engine.Applied, nil
}

// moved reports whether a command has gone on since it was read.
func moved(was, now projections.Entry) bool {
	return now.ClaimedBy != was.ClaimedBy || !now.NextAttemptAt.Equal(was.NextAttemptAt) || now.Attempts != was.Attempts ||
		now.Deliveries != was.Deliveries || now.Unknown != was.Unknown || now.LastError != was.LastError
}

// failure is the result of a command that somebody has failed. A consumer knows what became
// of it. Who ends the command of another knows what they have done themselves: what attempts
// before have left open stays so, one that is under way has not said yet what it does, and
// neither has a consumer to whom it was delivered.
func failure(row projections.Entry, said ack.Ack) json.RawMessage {
	e := said.Failure()
	if !said.Settles {
		return dispatch.Failed(&e, false, false)
	}
	unknown := ack.LeftOpen(row.LastError, row.NextAttemptAt, said.Actor, row.Unknown)
	return dispatch.Failed(&e, unknown || underway(row), ack.StaysOpen(row.LastError) || row.Deliveries > 0)
}

// withdrawn takes a command from the node that has it, if any, which is not told: one that waits
// there for its place is not begun, and what comes of an attempt under way is not recorded.
func withdrawn(row projections.Entry) store.Claim {
	return store.Claim{
		InstanceID: row.InstanceID, Position: row.Position, Expect: row.ClaimedBy, ExpectNext: row.NextAttemptAt, Seen: !underway(row),
		Attempts: row.Attempts, NextAt: row.NextAttemptAt, Error: row.LastError, Delivered: row.DeliveredAt, Deliveries: row.Deliveries,
		Unknown: row.Unknown || underway(row), GivenUp: row.GivenUpAt,
	}
}

// underway says that a node makes an attempt at a command.
func underway(row projections.Entry) bool { return row.ClaimedBy != "" && row.Attempts > 0 }

// acknowledged gives a command's result to who waits for it, as a turn of the
// instance, which settles the row. Nothing is recorded when it is settled; and
// a suspended instance keeps one, by its signal id. Who ends the command of somebody else may,
// and says what became of it, by the row: while the turn waits, a worker or a node may have
// taken it.
func (a *acknowledger) acknowledged(ctx context.Context, c engine.Command, row projections.Entry, result json.RawMessage, said ack.Ack, deliveries int, by []store.Audit) (engine.Disposition, error) {
	n, now := saidOf(c, said, deliveries), a.dispatcher.Now()
	env := signal.Envelope{
		SignalID: c.Token + "/ack", InstanceID: c.Instance, RuntimeProvider: signal.Provider, Type: signal.TaskCompleted,
		WaitingToken: c.Token, OccurredAt: now, Headers: service.ActorHeader(n.Actor), Payload: result,
	}
	body, err := env.Encode()
	if err != nil {
		return "", err
	}
	kept := false // by an instance that is suspended: the row of the command stays pending
	decide := func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
		kept = false
		if _, waits := snap.Wait(c.Token); !waits {
			return nil, errSettled
		}
		if said.Settles {
			if now, _, err := a.command(ctx, place{c.Instance, c.Position}); err != nil || moved(row, now) {
				return nil, errMoved // what cannot be read is read again
			}
		}
		n.Stays = ack.Stays(def, c.Pointer, entryOf(c, n.Outcome))
		first, err := ackTurn(def, snap, in, func(t *engine.Turn) error { return n.Record(t, c, entryOf(c, n.Outcome), said.Signal) })
		if err != nil {
			return nil, err
		}
		out, err := turn.Step(def, &first.Snapshot, in)
		if err != nil {
			return nil, err
		}
		kept = out.Disposition == engine.Buffered
		return first.Then(out), nil
	}
	amend := func(whole *store.Change) {
		if kept && row.ClaimedBy != "" || said.Settles && said.Outcome == ack.Failed && !underway(row) { // else it is begun, though it is over
			whole.Claims = append(whole.Claims, withdrawn(row))
		}
		audited(by)(whole)
	}
	out, err := a.notes.pump.Submit(ctx, turn.Signal{Envelope: env, Now: now, Decide: decide, Amend: amend})
	var p *problem.Error
	undecided := errors.As(err, &p) && !errors.Is(err, store.ErrUnknown) && (p.Kind == problem.Internal || p.Kind == problem.Unavailable || p.Code == "definition.unknown")
	if !undecided {
		return out.Disposition, err
	}
	a.dispatcher.Log.Warn("acknowledgement could not be applied at once and is queued", "instance", c.Instance, "command", c.Position, "error", err)
	return engine.Queued, a.dispatcher.Writer.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}, Audit: by})
}

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
	return &acknowledger{d, n, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "aqueduct_acknowledgements_total", Help: "Acknowledgements of commands.",
	}, []string{"outcome"})}
}

// ackTries is how often an acknowledgement is tried again whose commit had an
// unknown outcome. What it writes is guarded.
const ackTries = 20

// errSettled says that a command is done with.
var errSettled = errors.New("the command is settled")

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
	for try := 0; ; try++ {
		for i := range by {
			by[i].ID = uuid.NewString() // the commit before may have been made
		}
		row, c, err := a.command(ctx, at)
		if err == nil {
			err = may(row, c)
		}
		if err == nil {
			err = settled(row, c, said)
		}
		if err == nil {
			did, err = a.acknowledge(ctx, row, said, by)
		}
		if errors.Is(err, errSettled) || errors.Is(err, store.ErrTaken) || did == engine.Duplicate {
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
	j, _, err := dispatch.Spoken(row)
	return j.Command(), err
}

// givenUp reports whether a command is what a dead letter announces, and nobody performs it.
func givenUp(row projections.Entry) bool {
	return row.ClaimedBy == "" && strings.HasPrefix(row.LastError, dispatch.NoticeGivenUp)
}

// settled is errSettled when what is said of a command comes too late: it is done with, or
// given up, and an operator has its dead letter. That it was processed after all counts.
func settled(row projections.Entry, c engine.Command, said ack.Ack) error {
	if *row.Processed || c.Ack > 0 && said.Outcome != ack.Processed && givenUp(row) {
		return errSettled
	}
	return nil
}

// acknowledge applies an acknowledgement to a command that is open. Whoever
// performs the command has it no more: what comes of that attempt does not
// count.
func (a *acknowledger) acknowledge(ctx context.Context, row projections.Entry, said ack.Ack, by []store.Audit) (engine.Disposition, error) {
	if now := a.dispatcher.Now(); !row.CreatedAt.Add(a.dispatcher.AckAge).After(now) {
		row.CreatedAt = now // it was replayed since, which has begun a new age
	}
	j, deliveries, err := dispatch.Spoken(row)
	if err != nil {
		return "", err
	}
	c := j.Command()
	var change store.Change
	switch said.Outcome {
	case ack.Delivered:
		change, err = a.dispatcher.Record.Again(j, c.Ack, store.Claim{Any: true, Delivered: a.dispatcher.Now(), Deliveries: deliveries, Error: row.LastError})
	case ack.Retry:
		change, err = a.dispatcher.Record.Again(j, said.Delay, store.Claim{
			Any: true, Deliveries: deliveries, Error: dispatch.NoticeRetry + ": the consumer asks for it once more",
		})
	case ack.Processed:
		if c.Token != "" {
			return a.acknowledged(ctx, c, dispatch.Payload(said.Output), said, deliveries, by)
		}
		change.Claims = []store.Claim{{InstanceID: c.Instance, Position: c.Position, Any: true, Done: true}}
	case ack.Failed:
		e := said.Failure()
		if c.Token != "" {
			return a.acknowledged(ctx, c, dispatch.Failed(&e, said.Settles && ack.LeftOpen(row.LastError, row.NextAttemptAt, said.Actor, row.Unknown), false), said, deliveries, by)
		}
		change = a.dispatcher.Record.Abandon(j, store.Claim{Any: true}, codeAckFailed, e)
		change.DeadLetter.Attempts = row.Attempts + row.Deliveries
	}
	if err != nil {
		return "", err
	}
	n := saidOf(c, said, deliveries)
	change.Audit = by
	n.NextAttempt = noteOf(c, &change).NextAttempt
	open := func() error { // to what is said, after the turn before
		row, _, err := a.command(ctx, place{c.Instance, c.Position})
		if err != nil {
			return err
		}
		return settled(row, c, said)
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

// acknowledged gives a command's result to who waits for it, as a turn of the
// instance, which settles the row. Nothing is recorded when it is settled; and
// a suspended instance keeps one, by its signal id.
func (a *acknowledger) acknowledged(ctx context.Context, c engine.Command, result json.RawMessage, said ack.Ack, deliveries int, by []store.Audit) (engine.Disposition, error) {
	n, now := saidOf(c, said, deliveries), a.dispatcher.Now()
	env := signal.Envelope{
		SignalID: c.Token + "/ack", InstanceID: c.Instance, RuntimeProvider: signal.Provider, Type: signal.TaskCompleted,
		WaitingToken: c.Token, OccurredAt: now, Headers: service.ActorHeader(n.Actor), Payload: result,
	}
	body, err := env.Encode()
	if err != nil {
		return "", err
	}
	decide := func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
		if _, waits := snap.Wait(c.Token); !waits {
			return nil, errSettled
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
		return first.Then(out), nil
	}
	out, err := a.notes.pump.Submit(ctx, turn.Signal{Envelope: env, Now: now, Decide: decide, Amend: audited(by)})
	var p *problem.Error
	undecided := errors.As(err, &p) && (p.Kind == problem.Internal || p.Kind == problem.Unavailable || p.Code == "definition.unknown")
	if !undecided {
		return out.Disposition, err
	}
	a.dispatcher.Log.Warn("acknowledgement could not be applied at once and is queued", "instance", c.Instance, "command", c.Position, "error", err)
	return engine.Queued, a.dispatcher.Writer.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}, Audit: by})
}

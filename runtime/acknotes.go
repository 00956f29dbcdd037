package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/dispatch"
	"github.com/aqueduct-engine/aqueduct/runtime/pump"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// What consumers say of commands, and what the engine has to say of those that
// are not acknowledged, are entries of the stream (D4, D5): written by a turn, in
// the commit that they are about, which also makes the command of their event.

// entryRepeated is the entry of the first acknowledgement of a command that was
// settled already. Those that follow are counted on it.
const entryRepeated = "AckRepeated"

// ackEntries are the types of what consumers say.
var ackEntries = map[ack.Outcome]string{
	ack.Delivered: "AckDelivered", ack.Processed: "AckProcessed", ack.Failed: "AckFailed", ack.Retry: "AckRetry",
}

// entryOf is the type of what is said of a command: by a consumer, or by an operator or
// a worker outside of one that asks for no acknowledgement.
func entryOf(c engine.Command, said ack.Outcome) string {
	switch {
	case c.Ack > 0:
		return ackEntries[said]
	case said == ack.Failed:
		return entryCommandFailed
	}
	return entryCommandCompleted
}

// noteOf is what a change of a command's claim comes to.
func noteOf(c engine.Command, change *store.Change) ack.Note {
	n := ack.Note{Command: c.Position, Key: c.Key, Consumer: ack.Consumer(c.Pointer)}
	for _, m := range change.Claims {
		n.Deliveries, n.Attempts, n.Reason = m.Deliveries, m.Attempts, m.Error
		if !m.NextAt.IsZero() && m.Owner == "" {
			n.NextAttempt = &m.NextAt
		}
	}
	return n
}

// ackNotes makes the turns that record notes.
type ackNotes struct {
	*Config
	pump        *pump.Pump
	redelivered *prometheus.CounterVec // by target
}

// noted commits a change of a command with a notice about it.
func (a *ackNotes) noted(ctx context.Context, c engine.Command, notice string, change store.Change) error {
	n := noteOf(c, &change)
	n.Reason = strings.TrimPrefix(n.Reason, notice+": ")
	_, err := a.note(ctx, c, &change, n, notice, "", nil)
	if err == nil && notice == dispatch.NoticeReminder {
		a.redelivered.WithLabelValues(c.Target).Inc()
	}
	return err
}

// ackTurn decides a turn that only records something: of an instance in whatever
// state, which shows nothing of it.
func ackTurn(def engine.Definition, snap *snapshot.Snapshot, in engine.Input, record func(t *engine.Turn) error) (*engine.Outcome, error) {
	return engine.Decide(nil, *snap, in, func(t *engine.Turn) error {
		if by, ok := def.(ack.Quieter); ok { // whether a notice leaves is the newest policy's to say
			engine.Under(t, by.ByPolicy())
		}
		t.Basis.By, t.Snap.UpdatedAt = ack.ByNote, snap.UpdatedAt
		return record(t)
	})
}

// repeats reports whether a delivery that has failed so may yet succeed: whatever
// the consumer has answered, and whatever happened on the way to it.
func repeats(f *engine.Failure) bool {
	return f.Retry || engine.SameType(f.Error.Type, engine.ErrorBase+engine.ErrCommunication)
}

// note commits a change as a turn of the command's instance, which records something.
// Where no turn can be made, as for want of the definition, the change counts, and
// the log has the notice. What open says against it is the error; nil = nothing.
func (a *ackNotes) note(ctx context.Context, c engine.Command, change *store.Change, n ack.Note, entry, once string, open func() error) (engine.Disposition, error) {
	now := a.Now()
	env := signal.Envelope{
		SignalID: "ack/" + uuid.NewString(), InstanceID: c.Instance, RuntimeProvider: signal.Provider, Type: signal.RetryDue, OccurredAt: now,
	}
	s := turn.Signal{Envelope: env, Now: now, Alone: change.DeadLetter != nil, Amend: func(whole *store.Change) {
		whole.Claims = append(whole.Claims, change.Claims...)
		whole.Send = append(whole.Send, change.Send...)
		audited(change.Audit)(whole)
		if change.DeadLetter != nil {
			whole.DeadLetter = change.DeadLetter
		}
	}}
	s.Decide = func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
		if open != nil {
			if err := open(); err != nil {
				return nil, err
			}
		}
		n.Stays = ack.Stays(def, c.Pointer, entry)
		return ackTurn(def, snap, in, func(t *engine.Turn) error { return n.Record(t, c, entry, once) })
	}
	out, err := a.pump.Submit(ctx, s)
	var p *problem.Error
	if !errors.As(err, &p) || p.Kind == problem.Unavailable {
		return out.Disposition, err
	}
	a.Log.Warn("notice of a command could not be recorded", "instance", c.Instance, "command", c.Position, "error", err)
	return engine.Applied, a.Store.Writer.Commit(ctx, *change)
}

// saidOf is what a consumer says of a command that was delivered so often.
func saidOf(c engine.Command, said ack.Ack, deliveries int) ack.Note {
	return ack.Note{Command: c.Position, Key: c.Key, Consumer: ack.Consumer(c.Pointer), Outcome: said.Outcome, Actor: said.Actor, Error: said.Error, Deliveries: deliveries}
}

// repeated records that a consumer has spoken of a command that is settled: once.
// How often it does so again is counted there.
func (a *acknowledger) repeated(ctx context.Context, row projections.Entry, said ack.Ack) error {
	c, err := commandOf(row)
	if err != nil {
		return err
	}
	if said.Signal != "" { // the same message may have been taken by another consumer at the same time
		if known, err := a.dispatcher.Streams.Recorded(ctx, c.Instance, said.Signal); known || err != nil {
			return err
		}
	}
	n := saidOf(c, said, row.Deliveries)
	entry := entryRepeated
	if c.Ack <= 0 {
		entry = entryCommandRepeated
	}
	once, repeats := fmt.Sprintf("%s/%d", entry, c.Position), a.notes.Store.Repeats
	did, err := a.notes.note(ctx, c, &store.Change{}, n, entry, once, nil)
	if err != nil || did != engine.Duplicate || repeats == nil {
		return err
	}
	if err := counted(ctx, repeats, c.Instance, once); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil // the instance is gone since
}

// countTries is how often a repetition is tried to be counted, within some 4 s.
const countTries = 10

// counted counts a repetition. Another may be counted at the same moment, which has the row.
func counted(ctx context.Context, repeats backend.Repeats, instance, once string) (err error) {
	for i := range countTries {
		if err = repeats.Repeated(ctx, instance, once); problem.CodeOf(err) != "store.locked" || !turn.Pause(ctx, 5*time.Millisecond<<min(i, 8)) {
			break
		}
	}
	return err
}

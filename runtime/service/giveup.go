package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/operate"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// errNeeded says that somebody may yet need a faulted instance.
var errNeeded = errors.New("not given up")

// GiveUp cancels an instance that is faulted since before a moment, as an operator
// would, and reports whether it has. Its turn looks whether that is still so. Not given
// up is what nobody but a person can end: one whose compensation is stuck, or whose
// effect is undecided, or who has something to undo; nor one for which its parent waits.
func (o *Operator) GiveUp(ctx context.Context, id string, before time.Time, actor string) (bool, error) {
	s, err := o.Snapshot(ctx, id)
	if err != nil || !hopeless(&s, before) {
		return false, gone(err)
	}
	if p := s.Parent; p != nil && p.Token != "" {
		parent, err := o.Snapshot(ctx, p.InstanceID)
		if gone(err) != nil {
			return false, err
		}
		if err == nil && slices.ContainsFunc(parent.Waits, func(w snapshot.Wait) bool { return w.Token == p.Token }) {
			return false, nil
		}
	}
	now := o.Now()
	env := signal.Envelope{SignalID: NewID(), InstanceID: id, Type: signal.ExternalSignal, OccurredAt: now, Headers: ActorHeader(actor)}
	by := audit.As(audit.Row(ctx, now, string(engine.Cancel), id, id), actor)
	_, err = o.Pump.Submit(ctx, turn.Signal{Envelope: env, Now: now, Amend: func(c *store.Change) { audit.Over(c, by) },
		Decide: func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
			if !hopeless(snap, before) {
				return nil, errNeeded
			}
			out, err := operate.Operate(def, *snap, engine.Cancel, nil, in)
			if err == nil { // nobody waits for its end, and who did may be deleted
				out.Send = slices.DeleteFunc(out.Send, func(m engine.Message) bool { return m.Envelope.Type == signal.SubWorkflowCompleted })
			}
			return out, err
		}})
	if errors.Is(err, errNeeded) {
		return false, nil
	}
	return err == nil, gone(err)
}

// hopeless says whether a faulted instance has been left alone since before a moment,
// and has done nothing that is open outside, or to be undone.
func hopeless(s *snapshot.Snapshot, before time.Time) bool {
	undoes := len(s.Compensations)+len(s.SubFrames) > 0 || s.Compensating != nil && !s.Compensating.Done
	undecided := s.Error != nil && s.Error.Type == engine.TypeUndecided
	return s.Status == snapshot.Faulted && s.UpdatedAt.Before(before) && !undoes && !undecided
}

// gone is no error of an instance that is not there any more.
func gone(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
